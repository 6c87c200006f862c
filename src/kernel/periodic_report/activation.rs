//! What a profile would allow.

use crate::contract::error::ContractError;
use crate::contract::periodic_report::activation::{
    Activation, ActivationBoundary, ActivationSchema, ActivationStatus, InteractionContract,
    ProfilePreset,
};
use crate::contract::periodic_report::identity::digest_of;
use crate::contract::periodic_report::profile::Profile;
use crate::contract::periodic_report::vocabulary::{DeliveryMode, DependencyPolicy, Yes};

/// Returns the activation of a profile.
pub fn inspect(profile: Profile) -> Result<Activation, ContractError> {
    let policies = || {
        profile
            .sink_bindings
            .iter()
            .map(|sink| sink.dependency_policy)
    };
    let count = |wanted| policies().filter(|policy| *policy == wanted).count();
    Ok(Activation {
        ok: Yes,
        schema_version: ActivationSchema,
        status: match profile.enabled {
            true => ActivationStatus::Enabled,
            false => ActivationStatus::Disabled,
        },
        active: profile.enabled,
        generation_allowed: profile.enabled,
        profile_digest: digest_of(&profile)?,
        extension_mode: DeliveryMode::of(policies()),
        required_extension_count: count(DependencyPolicy::Required),
        optional_extension_count: count(DependencyPolicy::Optional),
        profile,
        boundary: ActivationBoundary,
        profile_preset: None,
        interaction_contract: None,
    })
}

/// Returns the activation of a preset, which also says what a session may do with it.
pub fn inspect_preset(preset: ProfilePreset) -> Result<Activation, ContractError> {
    Ok(Activation {
        profile_preset: Some(preset),
        interaction_contract: Some(InteractionContract::PRESET),
        ..inspect(preset.profile())?
    })
}
