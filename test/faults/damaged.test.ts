// A damaged page of the database, and failing maintenance: affected requests get 503, others
// succeed, and /readyz, /metrics and the log report the fault.
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { accord, accordServing, type Serving } from '../support/accord.ts'
import { useNewFolder } from '../support/folders.ts'

const password = 'correct horse battery'
const settings = { ACCORD_ADMIN_PASSWORD: password, ACCORD_LOG_LEVEL: 'info' }

const folder = useNewFolder('damaged')
let serving: Serving | undefined
afterEach(async () => {
  await serving?.stop('SIGKILL')
  serving = undefined
})

/** Overwrites the first page of a table. */
function damage(table: string): void {
  const file = join(folder, 'data', 'accord.db')
  const database = new Sqlite(file, { readonly: true })
  const page = database.prepare('select rootpage from sqlite_schema where name = ?').pluck().get(table) as number
  const size = database.pragma('page_size', { simple: true }) as number
  database.close()
  const handle = openSync(file, 'r+')
  writeSync(handle, Buffer.alloc(size, 0xff), 0, size, (page - 1) * size)
  closeSync(handle)
}

async function call(path: string, token?: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${serving?.url}${path}`, {
    headers: { accept: 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
  })
  return { status: answer.status, text: await answer.text() }
}

const reported = () => serving?.said.stdout.match(/"msg":"The database is damaged;[^"]*"/g) ?? []

describe('a damaged page', () => {
  // The second case damages a table that /metrics reads.
  it.each([
    ['lead_sources', '/api/admin/sources', 503],
    ['schedules', '/metrics', 200],
  ])('of %s is reported once it was met, until a restart', async (table, path, status) => {
    expect((await accord(folder, ['install'], settings)).code).toBe(0)
    damage(table)
    serving = await accordServing(folder, 'serve', { ...settings, ACCORD_WORKER: 'off' })
    expect((await call('/healthz')).status).toBe(200)
    const login = await fetch(`${serving.url}/api/admin/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ email: 'admin@example.com', password, device_name: 'test' }),
    })
    const { token } = ((await login.json()) as { data: { token: string } }).data
    for (let count = 0; count < 3; count++) expect((await call(path, token)).status).toBe(status)

    const ready = await call('/readyz')
    expect([ready.status, JSON.parse(ready.text).detail]).toEqual([
      503,
      expect.stringMatching(
        /^The database is damaged\. Run: accord doctor\. Then restore the last backup: accord restore <path> --force\. First seen: SQLITE_(CORRUPT|NOTADB)\w*, 2\S+Z\.$/,
      ),
    ])
    const metrics = await call('/metrics')
    expect(metrics.status).toBe(200)
    expect(metrics.text).toMatch(/^accord_database_faults_total\{kind="damaged"\} [1-9]\d*$/m)
    expect(metrics.text).toMatch(/^accord_database_fault\{kind="damaged"\} 1$/m)
    expect(metrics.text).toMatch(/^accord_database_fault\{kind="io"\} 0$/m)
    // Requests for undamaged tables succeed.
    expect((await call('/api/admin/tags', token)).status).toBe(200)
    await expect.poll(reported).toHaveLength(1)
    await call(path, token)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(reported()).toHaveLength(1)
    expect(reported()[0]).toContain('accord restore')
  })
})
