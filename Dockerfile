# falcon-rm as an unprivileged user, on a base that has the C library grpcio is built for.
# Pin the base where images are built: --build-arg BASE=python:3.11-slim@sha256:...
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
RUN python -m venv /opt/falcon
WORKDIR /src
COPY hack/requirements.lock hack/
RUN /opt/falcon/bin/pip install --no-cache-dir --only-binary :all: setuptools -c hack/requirements.lock
COPY setup.cfg pyproject.toml LICENSE README.md ./
COPY sql sql
COPY falcon_rm falcon_rm
# The lock is a constraint here: what only development needs stays out.
RUN /opt/falcon/bin/pip install --no-cache-dir --no-build-isolation --prefer-binary -c hack/requirements.lock . \
    && /opt/falcon/bin/pip uninstall --yes setuptools pip

FROM ${BASE}
COPY --from=build /opt/falcon /opt/falcon
ENV PATH=/opt/falcon/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# The kubelet and Prometheus come to the pod's own address; outside an image nothing listens unless it is asked for.
ENV FALCON_METRICS_ADDRESS=0.0.0.0:8080
USER 65532:65532
ENTRYPOINT ["falcon-rm"]
CMD ["run"]
