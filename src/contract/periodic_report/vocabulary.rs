//! The closed vocabularies of the report contracts.

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum $name { $($variant),+ }

        impl $name {
            /// Every member with its wire spelling.
            pub const CHOICES: &'static [(&'static str, Self)] = &[$(($text, Self::$variant)),+];

            /// Returns the wire spelling.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Finds a member by its wire spelling.
            pub fn find(text: &str) -> Option<Self> {
                Self::CHOICES.iter().find(|(name, _)| *name == text).map(|(_, member)| *member)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(self.as_str())
            }
        }
    };
}
pub(crate) use vocabulary;

/// A `schema_version` field that prints its constant.
macro_rules! schema_version {
    ($(#[$doc:meta])* $name:ident, $text:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name;

        impl $name {
            /// The constant it prints.
            pub const TEXT: &'static str = $text;
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str($text)
            }
        }
    };
}
pub(crate) use schema_version;

vocabulary!(
    /// What kind of report a run makes.
    ReportKind {
        CadenceDigest => "cadence_digest",
        ExceptionUpdate => "exception_update",
        ManualUpdate => "manual_update",
        MilestoneUpdate => "milestone_update",
    }
);

vocabulary!(
    /// A fact that may justify a report, or control-plane noise that never does.
    TriggerKind {
        Manual => "manual",
        PrimaryGoalOutcome => "primary_goal_outcome",
        VisionClosed => "vision_closed",
        MaterialBlocker => "material_blocker",
        MaterialRecovery => "material_recovery",
        MaterialDecision => "material_decision",
        BoundedSegmentMilestone => "bounded_segment_milestone",
        CadenceDue => "cadence_due",
        SurfaceOnly => "surface_only",
        StateRefreshed => "state_refreshed",
        TodoCompleted => "todo_completed",
        MonitorUnchanged => "monitor_unchanged",
        VisionCheckpoint => "vision_checkpoint",
    }
);

impl TriggerKind {
    /// Returns the urgency; noise has none.
    pub const fn priority(self) -> u8 {
        match self {
            Self::Manual => 100,
            Self::PrimaryGoalOutcome => 90,
            Self::VisionClosed => 80,
            Self::MaterialBlocker => 70,
            Self::MaterialRecovery => 60,
            Self::MaterialDecision => 50,
            Self::BoundedSegmentMilestone => 40,
            Self::CadenceDue => 10,
            _ => 0,
        }
    }

    /// Tells whether this kind is control-plane noise.
    pub const fn is_noise(self) -> bool {
        self.priority() == 0
    }

    /// Tells whether this kind may break the quiet interval.
    pub const fn bypasses_cooldown(self) -> bool {
        self.priority() >= 70
    }

    /// Returns the kind of report it leads to.
    pub const fn report_kind(self) -> ReportKind {
        match self {
            Self::Manual => ReportKind::ManualUpdate,
            Self::MaterialBlocker => ReportKind::ExceptionUpdate,
            Self::CadenceDue => ReportKind::CadenceDigest,
            _ => ReportKind::MilestoneUpdate,
        }
    }
}

vocabulary!(
    /// How completely a source could be read.
    SourceStatus {
        Complete => "complete",
        Partial => "partial",
        Failed => "failed",
        Unknown => "unknown",
    }
);

vocabulary!(
    /// How far an artifact is.
    ArtifactStatus {
        Pending => "pending",
        Rendered => "rendered",
        Failed => "failed",
        Unknown => "unknown",
    }
);

vocabulary!(
    /// How far a sink is.
    SinkStatus {
        Pending => "pending",
        Sent => "sent",
        Failed => "failed",
        Skipped => "skipped",
        Unknown => "unknown",
    }
);

vocabulary!(
    /// What a sink does with a report.
    SinkRole {
        Archive => "archive",
        Delivery => "delivery",
    }
);

vocabulary!(
    /// How much delivery depends on a sink.
    DependencyPolicy {
        Required => "required",
        Optional => "optional",
        Disabled => "disabled",
    }
);

vocabulary!(
    /// How a report depends on extensions.
    DeliveryMode {
        Portable => "portable",
        Enhanced => "enhanced",
        Durable => "durable",
    }
);

impl DeliveryMode {
    /// Derives the mode from the policies of all sink bindings.
    pub fn of(policies: impl Iterator<Item = DependencyPolicy>) -> Self {
        policies.fold(Self::Portable, |mode, policy| match policy {
            DependencyPolicy::Required => Self::Durable,
            DependencyPolicy::Optional => mode.max(Self::Enhanced),
            DependencyPolicy::Disabled => mode,
        })
    }
}

vocabulary!(
    /// What a report item speaks of.
    ContentKind {
        CapabilityChange => "capability_change",
        Coverage => "coverage",
        Decision => "decision",
        DeliveryReceipt => "delivery_receipt",
        NextAction => "next_action",
        Outcome => "outcome",
        Progress => "progress",
        Risk => "risk",
        Runtime => "runtime",
    }
);

impl ContentKind {
    /// Tells whether this kind may only stand in the appendix.
    pub const fn is_supporting_only(self) -> bool {
        matches!(self, Self::Runtime | Self::DeliveryReceipt | Self::Coverage)
    }
}

vocabulary!(
    /// Where a report item stands.
    Visibility {
        Primary => "primary",
        Supporting => "supporting",
    }
);

vocabulary!(
    /// The colour of a highlight.
    Tone {
        Attention => "attention",
        Neutral => "neutral",
        Positive => "positive",
    }
);

/// A block of constant facts about what a packet does not do.
macro_rules! boundary {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $value:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name;

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = out.serialize_map(None)?;
                $(map.serialize_entry(stringify!($field), &$value)?;)+
                map.end()
            }
        }
    };
}
pub(crate) use boundary;

/// Prints `true`: the command did what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Yes;

impl serde::Serialize for Yes {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_bool(true)
    }
}

/// Prints `false`: a promise of what did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct No;

impl serde::Serialize for No {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_bool(false)
    }
}
