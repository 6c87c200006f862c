//! `loopx periodic-report generate`.

use super::args::Format;
use super::args::{GenerateArgs, Global, LanguageName, PrintName};
use super::emit::{REPORT_ERROR_SCHEMA, Reply};
use super::input;
use crate::compose::{self, BuiltinSources};
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, GoalId};
use crate::contract::packet::Refusal;
use crate::contract::parse::Label;
use crate::contract::periodic_report::artifact::RendererAdapter;
use crate::contract::periodic_report::profile::Profile;
use crate::contract::public_safety;
use crate::flow::generate::{self, GenerateCommand, GenerateMode, ReportLanguage};
use crate::render::generate_text;

/// Generates one report.
pub(super) fn run(args: &GenerateArgs, global: &Global) -> Reply {
    if args.print.is_some() && global.format == Format::Json {
        let message = "--print writes the artifact's own text; leave out --format json or --print";
        let refusal = Refusal::new(ErrorCode::InvalidArguments, message);
        return Reply::misused(&refusal.packet(REPORT_ERROR_SCHEMA, "generate"));
    }
    match identities(args) {
        Err(refusal) => Reply::misused(&refusal.packet(REPORT_ERROR_SCHEMA, "generate")),
        Ok(ids) => answer(args, global, ids)
            .unwrap_or_else(|refusal| Reply::refused(refusal, REPORT_ERROR_SCHEMA, "generate")),
    }
}

type Identities = (Option<GoalId>, Option<AgentId>);

fn answer(args: &GenerateArgs, global: &Global, ids: Identities) -> Result<Reply, Refusal> {
    let ports = compose::ports(
        global.registry.as_deref(),
        global.runtime_root.as_deref(),
        "periodic-report generate",
    )?;
    let command = command(args, ids)?;
    let generated = generate::run(&ports, &BuiltinSources, &command)?;
    Ok(match generated.printed {
        Some(text) => Reply::text(text),
        None => Reply::with_text(&generated.result, generate_text::result),
    })
}

fn identities(args: &GenerateArgs) -> Result<Identities, Refusal> {
    let wrong = |flag: &str| {
        let message = format!("{flag} does not name one; `loopx status` lists what there is");
        Refusal::new(ErrorCode::InvalidArguments, message)
    };
    let goal = args
        .goal_id
        .as_deref()
        .map(|text| GoalId::new(text).ok_or_else(|| wrong("--goal-id")));
    let agent = args.agent_id.as_deref();
    let agent = agent.map(|text| AgentId::normalize(text).ok_or_else(|| wrong("--agent-id")));
    Ok((goal.transpose()?, agent.transpose()?))
}

fn command(
    args: &GenerateArgs,
    (goal_id, agent_id): Identities,
) -> Result<GenerateCommand, Refusal> {
    Ok(GenerateCommand {
        profile: profile(args)?,
        profile_file: args.profile_json.clone(),
        sources: args.sources.clone(),
        goal_id,
        agent_id,
        window: args.window.clone(),
        timezone: args.timezone.clone(),
        title: args.title.clone(),
        language: match args.language {
            LanguageName::English => ReportLanguage::English,
            LanguageName::Chinese => ReportLanguage::Chinese,
        },
        out: args.out.clone(),
        print: args.print.map(|print| match print {
            PrintName::Markdown => RendererAdapter::Markdown,
            PrintName::Html => RendererAdapter::Html,
        }),
        mode: match args.preview {
            true => GenerateMode::Preview,
            false => GenerateMode::Publish,
        },
    })
}

fn profile(args: &GenerateArgs) -> Result<Profile, Refusal> {
    let Some(path) = &args.profile_json else {
        return Ok(Profile::weekly_progress());
    };
    let value = input::json_object(path)?;
    public_safety::guard(&value)?;
    Ok(Profile::parse(&Label::root(), &value)?)
}
