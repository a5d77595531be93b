"""The scheduler: a pipeline and a platform in, a schedule and its code out. `compiler` names the phases in order.

Nothing here reads a clock or a network; `docs/architecture.md` says what each package does."""
