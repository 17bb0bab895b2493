// placeholder while being written
import type { FastifyInstance } from 'fastify'
import type { Config } from './config.ts'
import type { Published } from './published.ts'

export async function registerDocs(_http: FastifyInstance, _options: { config: Config; published: () => Published | null }): Promise<void> {}
