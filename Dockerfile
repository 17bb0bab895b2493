# syntax=docker/dockerfile:1
# The first stage builds dist; the image has only dist and the production packages. The data is in
# the volume /data.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY tsconfig.json openapi.yaml ./
COPY codegen codegen
COPY db db
COPY src src
# npm ci also generates types and the contract's document, so it needs the sources.
RUN npm ci
RUN npm run build && npm prune --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production ACCORD_ENV=production ACCORD_HOST=0.0.0.0 ACCORD_PORT=8000 ACCORD_DATA_DIR=/data
# Returns the 19 MiB of a password hash to the system. By default glibc raises this threshold after
# the first such block is freed, and then each thread keeps one.
ENV MALLOC_MMAP_THRESHOLD_=1048576
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json openapi.yaml LICENSE ./
RUN install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:'+process.env.ACCORD_PORT+'/healthz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
CMD ["node", "dist/src/cli.js", "start"]
