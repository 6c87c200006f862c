//! The words of both renderers, English and Chinese.
//!
//! Facts stay as they were written; only these labels follow the language of the editorial. A
//! Chinese page holds no English label.

use crate::contract::periodic_report::vocabulary::ContentKind;

/// One language of labels.
pub(crate) struct Labels {
    pub kicker: &'static str,
    pub period: &'static str,
    pub separator: &'static str,
    pub next: &'static str,
    pub source_word: &'static str,
    pub no_items: &'static str,
    pub no_items_here: &'static str,
    pub appendix: &'static str,
    pub skip: &'static str,
    pub changed: Question,
    pub at_risk: Question,
    pub what_next: Question,
    pub needed: Question,
    pub coverage: &'static str,
    pub coverage_link: &'static str,
    pub by_kind: &'static str,
    pub by_day: &'static str,
    pub undated: &'static str,
    pub index: &'static str,
    pub all_sections: &'static str,
    pub filter: &'static str,
    pub copy: &'static str,
    pub copied: &'static str,
    pub copy_failed: &'static str,
    pub print: &'static str,
    pub source_link: &'static str,
    pub plain: &'static str,
    pub plain_hint: &'static str,
    pub about: &'static str,
    pub sections: &'static str,
    pub items: &'static str,
    pub sources: &'static str,
    pub notes: &'static str,
    pub profile: &'static str,
    pub generated: &'static str,
    pub window: &'static str,
    pub document: &'static str,
    pub source: &'static str,
    pub status: &'static str,
    pub snapshot: &'static str,
    pub statuses: [&'static str; 4],
    pub kinds: [&'static str; 10],
    pub weekdays: [&'static str; 7],
    pub end: &'static str,
    pub top: &'static str,
    pub ask: &'static str,
    one_item: &'static str,
    many_items: &'static str,
    more: (&'static str, &'static str),
}

/// One of the four questions and what is said when nothing answers it.
pub(crate) struct Question {
    pub title: &'static str,
    pub none: &'static str,
}

impl Labels {
    /// Returns the labels for an editorial language.
    pub fn of(language: Option<&str>) -> &'static Self {
        if is_chinese(language) {
            &CHINESE
        } else {
            &ENGLISH
        }
    }

    /// Returns the name of a kind; an untyped item is a note.
    pub fn kind(&self, kind: Option<ContentKind>) -> &'static str {
        self.kinds[kind_index(kind)]
    }

    /// Returns `1 item`, `3 items`.
    pub fn item_count(&self, count: usize) -> String {
        match count {
            1 => self.one_item.to_owned(),
            _ => format!("{count} {}", self.many_items),
        }
    }

    /// Returns the link text for what a cell leaves out.
    pub fn more(&self, count: usize) -> String {
        format!("{}{count}{}", self.more.0, self.more.1)
    }
}

/// Tells whether labels and sentences are Chinese for a language.
pub(crate) fn is_chinese(language: Option<&str>) -> bool {
    language.is_some_and(crate::contract::text::is_chinese)
}

/// The order of kinds in legends and columns.
pub(crate) fn kind_index(kind: Option<ContentKind>) -> usize {
    match kind {
        Some(ContentKind::Outcome) => 0,
        Some(ContentKind::Decision) => 1,
        Some(ContentKind::Progress) => 2,
        Some(ContentKind::CapabilityChange) => 3,
        Some(ContentKind::Risk) => 4,
        Some(ContentKind::NextAction) => 5,
        Some(ContentKind::Runtime) => 6,
        Some(ContentKind::DeliveryReceipt) => 7,
        Some(ContentKind::Coverage) => 8,
        None => 9,
    }
}

static ENGLISH: Labels = Labels {
    kicker: "Periodic report",
    period: "Period",
    separator: ": ",
    next: "Next",
    source_word: "source",
    no_items: "No items.",
    no_items_here: "No items in this section.",
    appendix: "Appendix: delivery and runtime context",
    skip: "Skip to the sections",
    changed: Question {
        title: "What changed",
        none: "No outcome or decision is recorded.",
    },
    at_risk: Question {
        title: "At risk",
        none: "No risk is recorded.",
    },
    what_next: Question {
        title: "What is next",
        none: "No next action is recorded.",
    },
    needed: Question {
        title: "Needed from you",
        none: "Nothing is marked as needed from you.",
    },
    coverage: "Some sources were read only in part, so a fact that is missing here is no proof that the work is missing.",
    coverage_link: "The appendix says which.",
    by_kind: "Facts by kind",
    by_day: "Facts by kind and day (UTC)",
    undated: "without a date",
    index: "Report index",
    all_sections: "All sections",
    filter: "Filter report",
    copy: "Copy full report",
    copied: "Full report copied",
    copy_failed: "Press Ctrl+C or ⌘C to copy the selected text",
    print: "Print / PDF",
    source_link: "Source ↗",
    plain: "Full report as plain text (Markdown)",
    plain_hint: "One click selects all of it.",
    about: "About this report",
    sections: "Sections",
    items: "Items",
    sources: "Sources",
    notes: "Notes",
    profile: "Profile",
    generated: "Generated",
    window: "Period",
    document: "Document",
    source: "Source",
    status: "Status",
    snapshot: "Snapshot",
    statuses: ["Complete", "Partial", "Failed", "Unknown"],
    kinds: [
        "Outcome",
        "Decision",
        "Progress",
        "Capability",
        "Risk",
        "Next action",
        "Runtime",
        "Delivery receipt",
        "Coverage",
        "Note",
    ],
    weekdays: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    end: "End of report",
    top: "Back to top",
    ask: "ask",
    one_item: "1 item",
    many_items: "items",
    more: ("+ ", " more"),
};

static CHINESE: Labels = Labels {
    kicker: "周期报告",
    period: "报告周期",
    separator: "：",
    next: "下一步",
    source_word: "来源",
    no_items: "暂无条目。",
    no_items_here: "本节暂无条目。",
    appendix: "附录：投递与运行信息",
    skip: "跳到正文",
    changed: Question {
        title: "本期变化",
        none: "没有记录成果或决策。",
    },
    at_risk: Question {
        title: "风险",
        none: "没有记录风险。",
    },
    what_next: Question {
        title: "下一步",
        none: "没有记录下一步。",
    },
    needed: Question {
        title: "需要你处理",
        none: "没有标记需要你处理的事项。",
    },
    coverage: "部分来源未能完整读取；此处没有列出，不代表工作没有发生。",
    coverage_link: "详见附录。",
    by_kind: "事实分布（按类型）",
    by_day: "事实分布（按类型与日期，UTC）",
    undated: "无日期",
    index: "报告目录",
    all_sections: "全部章节",
    filter: "搜索报告内容",
    copy: "复制完整文字版",
    copied: "完整文字版已复制",
    copy_failed: "文字已选中，请按 Ctrl+C 或 ⌘C 复制",
    print: "打印 / 存为 PDF",
    source_link: "查看来源 ↗",
    plain: "完整文字版（Markdown）",
    plain_hint: "点击一次即可全选。",
    about: "关于本报告",
    sections: "章节",
    items: "条目",
    sources: "来源",
    notes: "说明",
    profile: "配置",
    generated: "生成时间",
    window: "报告周期",
    document: "文档",
    source: "来源",
    status: "状态",
    snapshot: "快照",
    statuses: ["完整", "部分", "失败", "未知"],
    kinds: [
        "成果",
        "决策",
        "进展",
        "能力",
        "风险",
        "下一步",
        "运行状态",
        "投递回执",
        "覆盖范围",
        "补充说明",
    ],
    weekdays: ["周一", "周二", "周三", "周四", "周五", "周六", "周日"],
    end: "报告结束",
    top: "回到顶部",
    ask: "待处理",
    one_item: "1 项",
    many_items: "项",
    more: ("另有 ", " 项"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_item_is_singular_and_every_zh_tag_is_chinese() {
        assert_eq!(Labels::of(None).item_count(1), "1 item");
        assert_eq!(Labels::of(Some("en")).item_count(0), "0 items");
        assert_eq!(Labels::of(Some("ZH-Hant")).item_count(1), "1 项");
        assert_eq!(Labels::of(Some("zh-CN")).more(4), "另有 4 项");
    }
}
