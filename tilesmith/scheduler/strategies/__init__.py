"""Strategies: a language of steps, combinators and predicates in which users say how a pipeline is scheduled."""
