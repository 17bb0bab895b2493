// Reads rows and converts them to replies. Related records are loaded once for all rows of a page.
import type { Context } from '../context.ts'
import { notFound } from '../errors.ts'
import { checkIfMatch, withVersionOfOwner } from '../write/etag.ts'
import type { Snapshot } from '../write/events.ts'
import type { AnyResource, AnyRow, ResourceParts } from './any-definition.ts'
import type { Include } from './definition.ts'

export interface RecordReader
  extends Pick<AnyResource, 'assertVisible' | 'withVersionOf' | 'visibleIds' | 'get' | 'getMany' | 'list'> {
  /** Returns the row if the caller may see it. Throws 404 otherwise. */
  findRow(ctx: Context, id: number): Promise<AnyRow>
  /**
   * Returns the row that a write will change. Throws 404 when the caller may not see or change the
   * row, and 412 when If-Match names another version.
   */
  findCurrent(ctx: Context, id: number): Promise<AnyRow>
  /** Returns the row after a write, even if the caller may not see it any longer. */
  findWritten(ctx: Context, id: number): Promise<AnyRow>
  toReply(ctx: Context, row: AnyRow, include?: Include): Promise<Snapshot>
}

export function createReader({ d, rows }: Pick<ResourceParts, 'd' | 'rows'>): RecordReader {
  const { noun, table } = d

  async function toReplies(ctx: Context, found: readonly AnyRow[], include: Include): Promise<Snapshot[]> {
    const replies = found.map((row) => d.toReply(row, ctx))
    if (replies.length > 0) await d.loadRelated?.(ctx, replies, include)
    return replies
  }

  const reader: RecordReader = {
    async findRow(ctx, id) {
      const [row] = await rows.byIds(ctx, [id])
      if (!row) throw notFound(noun, id)
      return row
    },

    async findCurrent(ctx, id) {
      const row = await reader.findRow(ctx, id)
      if (d.canChange?.(ctx, row) === false) throw notFound(noun, id)
      if (row.version !== undefined) checkIfMatch(ctx, row.version)
      return row
    },

    findWritten: (ctx, id) => reader.findRow({ ...ctx, visibleRecord: { table, id } }, id),

    toReply: async (ctx, row, include = []) => (await toReplies(ctx, [row], include))[0] as Snapshot,

    assertVisible: async (ctx, id) => void (await reader.findCurrent(ctx, id)),

    withVersionOf: async (ctx, id, read) => {
      const { version } = await reader.findCurrent(ctx, id)
      const reply = await read()
      return version === undefined ? reply : withVersionOfOwner(reply, version)
    },

    visibleIds: rows.visibleIds,

    get: async (ctx, id, include) => reader.toReply(ctx, await reader.findRow(ctx, id), include),

    async getMany(ctx, ids, include = []) {
      const wanted = [...new Set(ids)]
      if (wanted.length === 0) return new Map()
      const replies = await toReplies(ctx, await rows.byIds(ctx, wanted), include)
      const byId = new Map(replies.map((reply) => [reply.id as number, reply]))
      // SQLite and PostgreSQL return the rows in different orders.
      return new Map(wanted.flatMap((id) => (byId.has(id) ? [[id, byId.get(id) as Snapshot]] : [])))
    },

    async list(ctx, query, narrow) {
      const { rows: found, links, meta } = await rows.page(ctx, query, narrow)
      return { data: await toReplies(ctx, found, (query.include ?? []) as Include), links, meta }
    },
  }
  return reader
}
