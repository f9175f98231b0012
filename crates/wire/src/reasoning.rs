//! Reasoning effort and reasoning summaries.

spelled! {
    /// The reasoning effort for an answer.
    pub open enum ReasoningEffort {
        "none" => None,
        "minimal" => Minimal,
        "low" => Low,
        "medium" => Medium,
        "high" => High,
        "xhigh" => XHigh,
    }
}

spelled! {
    /// The detail of reasoning summaries.
    pub open enum ReasoningSummary {
        "auto" => Auto,
        "concise" => Concise,
        "detailed" => Detailed,
        "none" => None,
    }
}

spelled! {
    /// The verbosity of answers.
    pub open enum Verbosity {
        "low" => Low,
        "medium" => Medium,
        "high" => High,
    }
}
