// Checks the state after a round: the database is intact, the search index is complete, and every
// record can be listed, read, exported and found in the event log.
import { searchIndex } from '../../src/operations.ts'
import type { World } from '../contract/support.ts'
import { facts } from '../support/schema.ts'
import { findingsOf, isJson, lists } from './check.ts'
import { mark } from './hostile.ts'

/** Returns findings. `logged` returns the findings of the server's log. */
export async function aftermath({ server }: World, logged: () => string[]): Promise<string[]> {
  const found: string[] = []
  // Long enough for failing jobs to be given up, so that the log has their errors.
  for (let times = 6; times > 0; times--) {
    server.clock.advanceMs(3 * 3_600_000)
    await server.tick()
    await server.work()
  }
  found.push(...logged())
  const { store } = server
  found.push(...(await store.dialect.integrityProblems(store.db as never)).map((each) => `The database: ${each}`))
  const search = await searchIndex.findProblem(store.db as never, store.dialect)
  if (search !== null) found.push(`The search: ${search}`)
  const caller = await server.as(await anAdministrator(server))
  const ask = async (url: string): Promise<{ body: any } | undefined> => {
    const headers = { accept: 'application/json', authorization: `Bearer ${caller.token}` }
    const reply = await server
      .inject({ method: 'GET', url, headers })
      .catch((cause: unknown) => void found.push(`${url}: ${cause}`))
    if (!reply) return undefined
    const received = {
      status: reply.statusCode,
      headers: reply.headers as Record<string, string>,
      bytes: reply.rawPayload,
    }
    const wanted = {
      operation: null,
      method: 'GET',
      url,
      headers: [],
      bytes: undefined,
      who: 'admin',
      transport: 'inject',
    } as const
    const { findings } = findingsOf({ ...wanted, headers: [] }, received, false)
    if (reply.statusCode !== 200) findings.push(`answered ${reply.statusCode}.`)
    found.push(...findings.map((each) => `${url} at the end: ${each} ${reply.body.slice(0, 300)}`), ...logged())
    return { body: isJson(String(reply.headers['content-type'])) ? JSON.parse(reply.body) : undefined }
  }
  for (const id of lists) {
    const path = facts.find(([each]) => each === id)?.[1].path ?? ''
    const ids: number[] = []
    for (let next: string | null = `${path}?per_page=100`; next !== null; ) {
      const page: any = (await ask(next))?.body
      ids.push(...((page?.data ?? []) as { id: number }[]).map((each) => each.id))
      next = page?.links?.next ? String(page.links.next).replace(/^https?:\/\/[^/]+/, '') : null
    }
    const isShown = facts.some(([, each]) => each.method === 'get' && each.path === `${path}/{id}`)
    for (const each of isShown ? ids.slice(-60) : []) await ask(`${path}/${each}`)
  }
  for (const [, { path, method }] of facts) if (method === 'get' && path.endsWith('/export')) await ask(path)
  await readLog(ask)
  await ask(`/api/admin/search?q=${mark}`)
  return [...found, ...logged()]
}

/** Returns the id of a user with all permissions and the global view. */
export async function anAdministrator({ store: { db } }: World['server']): Promise<number> {
  const found = await db
    .selectFrom('users')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select('users.id')
    .where('roles.permission_type', '=', 'all')
    .where('users.is_active', '=', 1)
    .where('users.view_permission', '=', 'global')
    .orderBy('users.id')
    .executeTakeFirstOrThrow()
  return found.id
}

/** Reads every entry of the event log with the record it stores. */
async function readLog(ask: (url: string) => Promise<{ body: any } | undefined>): Promise<void> {
  for (let after = 0; ; ) {
    const page: any = (await ask(`/api/admin/events?after=${after}&per_page=100`))?.body
    const next = page?.meta?.next_after ?? page?.data?.at(-1)?.id
    if (typeof next !== 'number' || next <= after || page.data.length === 0) return
    after = next
  }
}
