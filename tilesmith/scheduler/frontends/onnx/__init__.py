"""ONNX: models as pipelines. `importer.py` reads files, `reader.py` a graph, the others have its operators."""
