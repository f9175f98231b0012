//! How hard a model is asked to think and how much it says about it.

spelled! {
    /// How much reasoning to spend on an answer.
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
    /// How much of its reasoning the model sums up for the reader.
    pub open enum ReasoningSummary {
        "auto" => Auto,
        "concise" => Concise,
        "detailed" => Detailed,
        "none" => None,
    }
}

spelled! {
    /// How long the model's answers are meant to be.
    pub open enum Verbosity {
        "low" => Low,
        "medium" => Medium,
        "high" => High,
    }
}
