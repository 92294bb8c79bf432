# Two images of this checkout: `device`, what an agent needs, and `cloud`, the same with Java, Spark
# and Delta. To make one by itself: docker build --target device --tag lasp-edge:device .
# Python is the release that the tests run on.
FROM python:3.11-slim-bookworm AS build
RUN python -m venv /opt/lasp
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY crdts crdts
COPY lasp_edge lasp_edge
COPY device_agent device_agent
COPY cloud_tier cloud_tier
COPY simulations simulations
RUN /opt/lasp/bin/pip install --no-cache-dir .

FROM python:3.11-slim-bookworm AS device
# Whoever runs in a container is not root, and owns nothing but the data.
RUN useradd --uid 10001 --no-create-home lasp && install -d -o lasp -g lasp /data
ENV PATH=/opt/lasp/bin:$PATH PYTHONUNBUFFERED=1
COPY --from=build /opt/lasp /opt/lasp
USER 10001
VOLUME /data
WORKDIR /data
ENTRYPOINT ["lasp-edge"]
CMD ["help"]

FROM build AS build-cloud
RUN /opt/lasp/bin/pip install --no-cache-dir '.[cloud]'

FROM device AS cloud
USER 0
ENV LASP_EDGE_CACHE=/opt/lasp-edge-cache
RUN install -d -o lasp -g lasp $LASP_EDGE_CACHE
COPY --from=build-cloud /opt/lasp /opt/lasp
USER 10001
# Delta's JARs and the archive of classes, so that a start needs no network.
RUN python -m cloud_tier.spark.prefetch
