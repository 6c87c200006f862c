//! `loopx goal-channel …`: one arm a command.

use super::args::Global;
use super::args::goal_channel::{
    GoalChannelArgs, GoalChannelCommand, TargetAddArgs, TargetCommand,
};
use super::emit::Reply;
use crate::compose;
use crate::contract::channel::packet::ChannelPacket;
use crate::contract::channel::target::TargetRequest;
use crate::flow::Mode;
use crate::flow::channel_target::TargetDesk;
use crate::flow::place::Place;

/// Runs one command.
pub(super) fn run(args: &GoalChannelArgs, global: &Global) -> Reply {
    let GoalChannelCommand::Target(target) = &args.command;
    let place = match Place::locate(global.registry.as_deref(), global.runtime_root.as_deref()) {
        Ok(place) => place,
        Err(_) => {
            let summary = "the current folder cannot be read; change into another one";
            let packet = ChannelPacket::new("target", false, "blocked", summary);
            return Reply::value(packet.blocked("invalid_configuration").packet());
        }
    };
    let desk = TargetDesk {
        place: &place,
        path: target.target_path.clone(),
        now: compose::now(),
    };
    let packet = match &target.command {
        TargetCommand::List => desk.list(),
        TargetCommand::Add(args) => desk.add(&request(args), Mode::of_switch(args.execute)),
    };
    Reply::packet(&packet)
}

fn request(args: &TargetAddArgs) -> TargetRequest<'_> {
    TargetRequest {
        name: &args.name,
        chat_id: &args.chat_id,
        chat_name: args.chat_name.as_deref(),
        identity_mode: &args.identity_mode,
        sender_profile: args.sender_profile.as_deref(),
        sender_identity: args.sender_identity.as_deref(),
        app_id: &args.bot_app_id,
        open_id: args.bot_open_id.as_deref(),
        display_name: args.bot_display_name.as_deref(),
        program: args.cli_bin.as_deref(),
    }
}
