# The worker: Headfast's command, git, and nothing that builds. The bots come in as /app/bot, their memory as /app/memory.
FROM node:20-slim AS build
WORKDIR /app
COPY scripts/image.sh scripts/
COPY package.json package-lock.json ./
RUN sh scripts/image.sh install
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN sh scripts/image.sh build
RUN sh scripts/image.sh prune

FROM node:20-slim
RUN apt-get update \
  && apt-get install --yes --no-install-recommends git \
  && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# A new volume takes its owner from here.
RUN mkdir bot memory && chown node:node bot memory
USER node
CMD ["node", "dist/cli/headfast.js", "worker", "--config", "/app/bot/headfast.config.mjs"]
