# The service with a C compiler inside, run by a user who is not root.
#
#   docker build -t tilesmith .
#   docker run -p 8000:8000 -e TILESMITH_ADMIN_TOKEN=choose-a-long-one -v tilesmith:/data tilesmith

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY editor editor
COPY tilesmith tilesmith
RUN python -m venv /opt/tilesmith && /opt/tilesmith/bin/pip install --no-cache-dir ".[dask,otel,postgres]"

FROM python:3.11-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home tilesmith \
    && install -d -o tilesmith -g tilesmith /data /artifacts /home/tilesmith/.cache
COPY --from=build /opt/tilesmith /opt/tilesmith
ENV PATH=/opt/tilesmith/bin:$PATH PYTHONUNBUFFERED=1 TILESMITH_DATA_DIR=/data
USER tilesmith
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# The service measures its machine when it starts, and keeps what it finds in /home/tilesmith/.cache: mount a volume there,
# or set TILESMITH_CALIBRATE=0, or TILESMITH_HOST_PLATFORM to a file of `tilesmith platforms calibrate`.
# Programs run confined by bubblewrap where the container may make user namespaces, by Landlock elsewhere.
# Reachable from outside, the service asks for a token: it refuses to start without TILESMITH_ADMIN_TOKEN.
CMD ["tilesmith", "serve", "--host", "0.0.0.0", "--port", "8000"]
