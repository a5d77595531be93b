"""Two schedules compared, decision by decision."""
