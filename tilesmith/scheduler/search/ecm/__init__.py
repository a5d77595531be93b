"""The method `default`: partitions into groups, and loop structures of each group, priced by the cost model `ecm`."""
