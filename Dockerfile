# One image for every role of docker-compose.yml; what a container is, its command says.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# A user without rights. The volumes take over the owner of the folders they are mounted on.
RUN useradd --uid 1000 --no-create-home umpc \
 && install -d -o umpc -g umpc -m 0700 /authority /enrolment /site

# What the project needs, in a layer that only pyproject.toml renews.
WORKDIR /src
COPY pyproject.toml ./
RUN python -c "import tomllib; f = tomllib.load(open('pyproject.toml', 'rb')); p = f['project']; \
print(*f['build-system']['requires'], *p['dependencies'], *p['optional-dependencies']['demo'], sep='\n')" > needed.txt \
 && python -m pip install --requirement needed.txt

COPY README.md ./
COPY umpc umpc
RUN python -m pip install --no-deps --no-build-isolation '.[demo]'
COPY deploy deploy

USER umpc
WORKDIR /site
ENTRYPOINT ["python", "/src/deploy/container.py"]
