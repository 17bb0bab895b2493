// A transaction runs again after a conflict with another one. The lost attempt must leave nothing
// behind: in replies, in the state of a longer work, in counters, in progress that is told. Here
// the first attempt of every transaction is lost, on either engine.
import { describe, expect, it, vi } from 'vitest'
import { systemContext } from '../../../src/kernel/context.ts'
import { transaction } from '../../../src/kernel/write/write.ts'
import { runNow } from '../../../src/resources/data-transfer/run/start-run.ts'
import { cleanFiles } from '../../../src/resources/files/clean-up.ts'
import { queueDelivery } from '../../../src/resources/webhooks/deliveries.ts'
import { file, form } from '../../support/form.ts'
import { given } from '../../support/given.ts'
import { importing } from '../../support/importing.ts'
import { useServer } from '../../support/using.ts'

const server = useServer()

const ctx = () => systemContext(server.app.services, 'cli')

class Lost extends Error {}

/**
 * From now on, each transaction is rolled back once before it runs for good. `between` runs between
 * the attempts.
 */
function loseFirstAttempts(between: () => unknown = () => undefined): void {
  const { store } = server
  const { transaction: run } = store
  vi.spyOn(store, 'transaction').mockImplementation(async (work, options) => {
    const lost = run(async (db) => {
      await work(db)
      throw new Lost()
    }, options)
    // The work may throw as well, as in a dry run.
    await lost.catch(() => undefined)
    await between()
    return run(work, options)
  })
}

describe('a transaction that runs again', () => {
  it('names each record of an atomic mass operation once', async () => {
    const make = given(server.admin)
    const ids = [(await make.lead()).id, (await make.lead()).id]
    loseFirstAttempts()
    const changes = { title: 'Renamed' }
    const { body } = await server.admin.post('/leads/mass-update', { ids, changes, atomic: true })
    expect(body).toEqual({ data: { processed: ids, failed: [] }, message: '2 leads updated.' })
  })

  it('validates the rows of an import as if they came for the first time', async () => {
    const { sku } = await given(server.admin).product()
    loseFirstAttempts()
    const { state, errors } = await importing(server.admin).validate('products', `sku\n${sku}`, { action: 'delete' })
    expect([state, errors]).toEqual(['validated', []])
  })

  it('tells the progress of an import once', async () => {
    const { id } = await importing(server.admin).record('products', 'sku,name,price\np-1,Seat,1')
    const told: number[][] = []
    loseFirstAttempts()
    await runNow(ctx(), id, 'validate', {
      onProgress: (...progress) => void told.push(progress),
      after: server.clock.now(),
    })
    expect(told).toEqual([[1, 1]])
  })

  it('counts each file once that the clean-up removes', async () => {
    const { body, headers } = await form({ file: file('old.txt', 'forgotten bytes') })
    expect((await server.admin.post('/files', body, { headers })).status).toBe(201)
    server.clock.advanceMs(2 * 86_400_000)
    loseFirstAttempts()
    expect((await cleanFiles(ctx())).files).toBe(1)
  })

  it('stores no file whose bytes were removed after its lost attempt', async () => {
    const sent = await form({ file: file('a.txt', 'shared with a file that is deleted') })
    const upload = () => server.admin.post('/files', sent.body, { headers: sent.headers })
    const { data } = (await upload()).body
    await server.store.db.deleteFrom('files').execute()
    loseFirstAttempts(() => server.app.services.files.remove?.(data.sha256))
    const refused = await upload()
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1'])
    vi.restoreAllMocks()
    const again = await upload()
    expect(again.status).toBe(201)
    const { text } = await server.admin.get(`/files/${again.body.data.id}/download`)
    expect(text).toBe('shared with a file that is deleted')
  })

  it('counts each delivery once that is given up', async () => {
    const webhook = { name: 'W', entity_type: 'leads', url: 'https://example.com/x', events: ['lead.*'] }
    const { id } = (await server.admin.post('/settings/webhooks', webhook)).body.data
    const { db } = server.store
    const event = await db.selectFrom('events').selectAll().orderBy('id', 'desc').executeTakeFirstOrThrow()
    await transaction(ctx(), (ctx) => queueDelivery(ctx, id, event))
    await db.updateTable('webhooks').set({ is_active: 0 }).where('id', '=', id).execute()
    const counted = async () =>
      (await server.app.services.metrics.text()).split('\n').find((line) => line.includes('outcome="given_up"'))
    expect(await counted()).toMatch(/ 0$/)
    loseFirstAttempts()
    await server.work()
    expect(await counted()).toMatch(/ 1$/)
  })

  it('leaves no record out of a search index that is made anew', async () => {
    await given(server.admin).person({ name: 'Zebedee' })
    await server.store.db.deleteFrom('search_index').execute()
    loseFirstAttempts()
    const { searchIndex, store } = server.app.services
    await searchIndex.rebuildOnline(store)
    expect((await server.admin.get('/search?q=zebedee')).body.data).toHaveLength(1)
  })
})
