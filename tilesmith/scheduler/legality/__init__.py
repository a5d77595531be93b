"""The verifier of schedules: a schedule that it accepts computes what the pipeline says."""
