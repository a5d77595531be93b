"""Webhooks: addresses that are told of finished jobs, signed by the Standard Webhooks specification."""
