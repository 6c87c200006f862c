//! `periodic_report_activation_v0`: what a profile would allow, without doing any of it.

use serde::Serialize;

use super::profile::Profile;
use super::vocabulary::{DeliveryMode, Yes, boundary, schema_version, vocabulary};

schema_version!(
    /// The schema of an activation.
    ActivationSchema,
    "periodic_report_activation_v0"
);

vocabulary!(
    /// Whether the profile is switched on.
    ActivationStatus {
        Enabled => "enabled",
        Disabled => "disabled",
    }
);

boundary!(
    /// What inspecting a profile does not do.
    ActivationBoundary {
        default_enabled: false,
        business_semantics_owned_by_sources: true,
        schedule_application_owned_by_host: true,
        extension_effects_performed: false,
        external_writes_performed: false,
    }
);

/// The activation packet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Activation {
    /// Always true: a disabled profile is an answer too.
    pub ok: Yes,
    /// The schema constant.
    pub schema_version: ActivationSchema,
    /// Enabled or disabled.
    pub status: ActivationStatus,
    /// Whether the profile is on.
    pub active: bool,
    /// Whether a report may be made.
    pub generation_allowed: bool,
    /// Digest of the normal form.
    pub profile_digest: String,
    /// The normal form.
    pub profile: Profile,
    /// How much delivery depends on extensions.
    pub extension_mode: DeliveryMode,
    /// Sinks that must be ready.
    pub required_extension_count: usize,
    /// Sinks that may be ready.
    pub optional_extension_count: usize,
    /// What this inspection did not do.
    pub boundary: ActivationBoundary,
    /// Which preset was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_preset: Option<ProfilePreset>,
    /// What a session may do with a preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interaction_contract: Option<InteractionContract>,
}

/// The names of the one preset.
pub const PRESET_ALIASES: [&str; 3] = ["weekly", "weekly-progress", "weekly-report"];

/// Which preset was asked for and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProfilePreset {
    requested_id: &'static str,
    resolved_id: &'static str,
    aliases: [&'static str; 3],
}

impl ProfilePreset {
    /// Finds a preset by name: trimmed, in any case, `_` for `-`.
    pub fn find(name: &str) -> Option<Self> {
        let wanted = crate::contract::text::trim(name)
            .to_lowercase()
            .replace('_', "-");
        let requested_id = PRESET_ALIASES.into_iter().find(|alias| *alias == wanted)?;
        Some(Self {
            requested_id,
            resolved_id: "weekly-progress",
            aliases: PRESET_ALIASES,
        })
    }

    /// Returns the profile behind the preset.
    pub fn profile(&self) -> Profile {
        Profile::weekly_progress()
    }
}

/// What an explicit request in a session is enough for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InteractionContract {
    mode: &'static str,
    explicit_user_request_sufficient: bool,
    project_profile_file_required: bool,
    automation_required: bool,
    schedule_created: bool,
    source_scope: &'static str,
    renderer_adapter_ids: [&'static str; 2],
    external_write_allowed: bool,
}

impl InteractionContract {
    /// The contract of the built-in preset.
    pub const PRESET: Self = Self {
        mode: "in_session_local_preview",
        explicit_user_request_sufficient: true,
        project_profile_file_required: false,
        automation_required: false,
        schedule_created: false,
        source_scope: "current_project_public_safe_loopx_state",
        renderer_adapter_ids: ["markdown_v0", "html_artifact_v0"],
        external_write_allowed: false,
    };
}
