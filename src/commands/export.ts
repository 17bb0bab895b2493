// `accord export`: writes all records of a type to a file or to the standard output. The bytes are
// those of the API's export.
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/config.ts'
import { assertCanCall } from '../kernel/context.ts'
import type { ExportQuery } from '../kernel/resource/export.ts'
import { actor, asSystem } from './context.ts'

interface Options {
  format: NonNullable<ExportQuery['format']>
  separator: string
  bom?: boolean
  timezone: NonNullable<ExportQuery['timezone']>
  output?: string
  as?: string
}

/** The exports by type. A command loads only the code of its own type. */
const exports = {
  persons: async () => (await import('../resources/persons/handlers.ts')).handlers.exportPersons,
  organizations: async () => (await import('../resources/organizations/resource.ts')).handlers.exportOrganizations,
  products: async () => (await import('../resources/products/handlers.ts')).handlers.exportProducts,
  leads: async () => (await import('../resources/leads/handlers.ts')).handlers.exportLeads,
  quotes: async () => (await import('../resources/quotes/handlers.ts')).handlers.exportQuotes,
  activities: async () => (await import('../resources/activities/handlers.ts')).handlers.exportActivities,
} as const
const operations = {
  persons: 'exportPersons',
  organizations: 'exportOrganizations',
  products: 'exportProducts',
  leads: 'exportLeads',
  quotes: 'exportQuotes',
  activities: 'exportActivities',
} as const

export function exportCommand(config: Config, type: keyof typeof exports, options: Options): Promise<void> {
  return asSystem(config, async (system) => {
    const ctx = { ...system, user: await actor(system, config, options.as) }
    assertCanCall(ctx, operations[type])
    const separator = (options.separator === '\\t' ? '\t' : options.separator) as NonNullable<ExportQuery['separator']>
    const { format, timezone } = options
    const query = { format, separator, timezone, ...(options.bom !== undefined && { bom: options.bom }) }
    const { parts } = await (await exports[type]())(ctx as never, { query } as never)
    await parts.beforeBody?.()
    const target = options.output === undefined ? process.stdout : createWriteStream(options.output)
    const end = target !== process.stdout
    await pipeline(Readable.from(parts.body as AsyncIterable<string | Buffer>), target, { end }).catch(
      (error: NodeJS.ErrnoException) => {
        // The reader of the output has closed it early, as `head` does.
        if (end || error.code !== 'EPIPE') throw error
      },
    )
  })
}
