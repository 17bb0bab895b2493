// Imports the sales data set from files while the server is killed several times. At the end, every
// row exists once, with one event. If the data set is missing, a small data set is repeated.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../../db/store.ts'
import { accord, accordKilled, accordServing, type Serving } from '../support/accord.ts'
import { file, form } from '../support/form.ts'
import { csvOf, path } from '../support/importing.ts'
import { workingFolder } from '../support/installed.ts'
import { besideTheRepository, missingIn, type Opportunity, readSales, type Sales, salesOf, slug } from './sales/data.ts'
import { smallTexts } from './sales/small.ts'

/** `npm run test:faults` imports all 8,800 rows. */
const full = process.env.ACCORD_TEST_FULL === '1'
const kills = full ? 4 : 2
/** The maximum number of rows, enough for kills within batches. */
const most = full ? 8800 : 600
const environment = {
  ACCORD_LOG_LEVEL: 'info',
  ACCORD_ADMIN_PASSWORD: 'correct horse battery',
  ACCORD_RATE_LIMIT: 'off',
}
const hasData = missingIn(besideTheRepository).length === 0

let folder: string
let serving: Serving | undefined
let token = ''
beforeAll(async () => {
  folder = await workingFolder()
})
afterAll(async () => {
  await serving?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const sales: Sales = hasData ? readSales(besideTheRepository) : salesOf(smallTexts())
const deals: Opportunity[] = hasData
  ? sales.opportunities.slice(0, most)
  : Array.from({ length: most }, (_, index) => sales.opportunities[index % sales.opportunities.length] as Opportunity)
const titleOf = (deal: Opportunity, index: number): string => `${deal.id}-${index}`
const emailOf = (account: string): string => `buyer@${slug(account)}.example`

function write(name: string, rows: (string | number)[][]): string {
  writeFileSync(join(folder, name), csvOf(rows))
  return name
}

async function api(method: string, at: string, body?: object | Buffer, headers: Record<string, string> = {}) {
  const sent = body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const answer = await fetch(`${serving?.url}/api/admin${at}`, {
    method,
    headers: {
      accept: 'application/json',
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent as BodyInit }),
  })
  const reply = (await answer.json()) as { data: any; meta: any }
  if (!answer.ok) throw new Error(`${at} answered ${answer.status}: ${JSON.stringify(reply)}`)
  return reply
}

/** Starts a server, and signs in once. The token stays valid after a restart. */
async function signIn(): Promise<void> {
  serving ??= await accordServing(folder, 'serve', environment)
  const account = { email: 'admin@example.com', password: environment.ACCORD_ADMIN_PASSWORD, device_name: 'test' }
  token ||= (await api('POST', '/login', account)).data.token
}

/** Reads the database while no process has it open. */
async function stored<T>(look: (db: ReturnType<typeof openStore>['db']) => Promise<T>): Promise<T> {
  const store = openStore(`sqlite:${join(folder, 'data/accord.db')}`)
  try {
    return await look(store.db)
  } finally {
    await store.close()
  }
}

describe('accord import', () => {
  it('imports files into an installation at rest, and says what it did', async () => {
    const accounts = write('accounts.csv', [
      ['name', 'address.country'],
      ...sales.accounts.map(({ name, country }) => [name, country]),
    ])
    const done = await accord(folder, ['import', accounts, '--type', 'organizations'], environment)
    expect(done).toMatchObject({ code: 0, stderr: '' })
    const { length } = sales.accounts
    expect(done.stdout).toContain(`Importing ${length}/${length}`)
    expect(done.stdout).toContain(`Created ${length}, updated 0, deleted 0, skipped 0.`)
  })

  it('exports what is imported, with a byte order mark for Excel', async () => {
    const done = await accord(folder, ['export', 'organizations', '--separator', ';'], environment)
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(done.stdout.startsWith('\ufeffid;name;')).toBe(true)
    expect(done.stdout.trimEnd().split('\r\n')).toHaveLength(sales.accounts.length + 1)
    const args = ['export', 'organizations', '--no-bom', '--output', 'organizations.csv']
    expect(await accord(folder, args, environment)).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect(readFileSync(join(folder, 'organizations.csv'), 'utf8')).toMatch(/^id,name,/)
  })

  it('imports nothing of a file with errors, tells of them and exits with 1', async () => {
    const products = write('products.csv', [
      ['sku', 'name', 'price'],
      ['fine', 'Fine', 1],
      ['bad', 'Bad', 'cheap'],
    ])
    const done = await accord(folder, ['import', products, '--type', 'products'], environment)
    expect(done.code).toBe(1)
    expect(done.stderr).toContain(
      'The file cannot be imported; nothing was changed.\n  row 3, price: Must be a number.',
    )
    expect(done.stderr).toContain('All invalid rows with their errors: products.errors.csv')
    expect(readFileSync(join(folder, 'products.errors.csv'), 'utf8')).toBe(
      'sku,name,price,error\r\nbad,Bad,cheap,price: Must be a number.\r\n',
    )
    const unknown = await accord(folder, ['import', products, '--type', 'quotes'], environment)
    expect(unknown).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Allowed choices are persons, organizations, products, leads.'),
    })
  })

  it('of a file of another system needs --yes, and says with which settings', async () => {
    const text = 'Company;Founded on;Remarks\nM\xfcller;1.3.2016;x\nBeta;;y\n'
    writeFileSync(join(folder, 'others.csv'), Buffer.from(text, 'latin1'))
    const args = ['import', 'others.csv', '--type', 'organizations', '--skip-errors']
    const refused = await accord(folder, args, environment)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toBe(
      'The file cannot be imported; nothing was changed.\n' +
        '  Unknown columns: Company, Founded on, Remarks. With --yes the file is imported as shown; --map changes a column.\n',
    )
    expect(refused.stdout).toMatch(/separated by ;, encoding windows-1252\n {2}Company +name +Müller, Beta/)
    const done = await accord(folder, [...args, '--map', 'Remarks=user_id', '--yes', '--json'], environment)
    expect(done.code).toBe(1)
    const { error_file: file, ...result } = JSON.parse(done.stdout)
    expect(result).toMatchObject({ state: 'invalid', invalid_rows_count: 2 })
    expect(file).toBe('others.errors.csv')
    expect(readFileSync(join(folder, file), 'latin1').split('\r\n')[1]).toMatch(/^M\xfcller;1\.3\.2016;x;Remarks: /)
    const omitting = [...args, '--map', 'Remarks=user_id', '--omit-invalid-cells', '--yes']
    const imported = await accord(folder, omitting, environment)
    expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining('Created 2') })
    expect(imported.stderr).toContain('row 2, Remarks: Must be a whole number or null. The cell was left out.')
    expect(existsSync(join(folder, 'others.omitted.csv'))).toBe(true)
  }, 120_000)

  it('that is killed halfway is continued by the next server', async () => {
    const persons = write('persons.csv', [
      ['name', 'emails', 'organization_name'],
      ...sales.accounts.map(({ name }) => [`Buyer at ${name}`, emailOf(name), name]),
      ...Array.from({ length: 300 }, (_, n) => [`Person ${n}`, `p${n}@example.com`, '']),
    ])
    const args = ['import', persons, '--type', 'persons']
    const { stdout } = await accordKilled(folder, args, /(Importing [1-3]00\/)/, environment)
    expect(stdout).not.toContain('Created')
    await signIn()
    const state = async () => (await api('GET', `${path}?sort=-id&per_page=1`)).data[0].state
    await expect.poll(state, { timeout: 240_000, interval: 100 }).toBe('completed')
    expect((await api('GET', '/contacts/persons?per_page=1')).meta.total).toBe(sales.accounts.length + 300)
  }, 300_000)
})

describe('an import of leads', () => {
  it('loses no row and doubles none, however often the server is killed', async () => {
    await signIn()
    const rows = deals.map((deal, index) => [
      titleOf(deal, index),
      deal.closeValue ?? deal.product.price,
      deal.account === null ? '' : emailOf(deal.account),
      deal.stage === 'won' ? 5 : deal.stage === 'lost' ? 6 : '',
      (deal.stage === 'won' || deal.stage === 'lost') && deal.closedOn !== null ? deal.closedOn : '',
      deal.engagedOn === null ? '' : `Engaged on ${deal.engagedOn}`,
    ])
    const header = ['title', 'lead_value', 'person_email', 'lead_pipeline_stage_id', 'closed_at', 'description']
    const sent = await form({ file: file('leads.csv', csvOf([header, ...rows])) })
    const upload = await api('POST', '/files', sent.body, sent.headers)
    const about = { type: 'leads', action: 'append', validation_strategy: 'stop-on-errors', file_id: upload.data.id }
    const { id } = (await api('POST', path, about)).data
    const shown = async () => (await api('GET', `${path}/${id}`)).data
    /** Waits until the import is no longer running. */
    const reaches = async (state: string) => {
      const isUnderWay = async () => ['validating', 'processing'].includes((await shown()).state)
      await expect.poll(isUnderWay, { timeout: 300_000, interval: 250 }).toBe(false)
      expect(await shown()).toMatchObject({ state, errors: [] })
    }
    await api('POST', `${path}/${id}/validate`)
    await reaches('validated')
    await api('POST', `${path}/${id}/start`)
    const reached: number[] = []
    // A fast machine may finish the import before the last kill.
    for (let kill = 0; kill < kills && (reached.at(-1) ?? 0) < deals.length; kill++) {
      const before = reached.at(-1) ?? 0
      await expect
        .poll(async () => (await shown()).processed_rows_count, { timeout: 240_000, interval: 20 })
        .toBeGreaterThan(before)
      // A random moment within the current batch.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * (full ? 200 : 50)))
      await serving?.stop('SIGKILL')
      reached.push(
        await stored(
          async (db) =>
            (
              await db
                .selectFrom('imports')
                .select('processed_rows_count')
                .where('id', '=', id)
                .executeTakeFirstOrThrow()
            ).processed_rows_count,
        ),
      )
      serving = await accordServing(folder, 'serve', environment)
    }
    await reaches('completed')
    expect(await shown()).toMatchObject({
      processed_rows_count: deals.length,
      errors_count: 0,
      summary: { created: deals.length, updated: 0, deleted: 0, skipped: 0 },
    })
    // Rows are counted in batches of 100. The first kill was during the import.
    expect(reached.filter((count) => count % 100 !== 0)).toEqual([])
    expect(reached[0]).toBeGreaterThan(0)
    expect(reached[0]).toBeLessThan(deals.length)
    await serving?.stop()
    serving = undefined
    await stored(async (db) => {
      const leads = await db.selectFrom('leads').select(['id', 'title', 'person_id']).orderBy('id').execute()
      expect(leads.map(({ title }) => title)).toEqual(deals.map(titleOf))
      expect(leads.filter((lead) => lead.person_id === null)).toHaveLength(
        deals.filter(({ account }) => account === null).length,
      )
      const events = await db
        .selectFrom('events')
        .select(['name', 'entity_id'])
        .where('origin', '=', 'import')
        .orderBy('id')
        .execute()
      const created = events.filter(({ name }) => name === 'lead.create.after')
      expect(created.map(({ entity_id }) => entity_id)).toEqual(leads.map((lead) => lead.id))
      const batches = await db
        .selectFrom('import_batches')
        .select('number')
        .where('import_id', '=', id)
        .orderBy('number')
        .execute()
      expect(batches.map(({ number }) => number)).toEqual(
        Array.from({ length: Math.ceil(deals.length / 100) }, (_, n) => n + 1),
      )
      const ends = await db
        .selectFrom('events')
        .select('id')
        .where('name', '=', 'data_transfer.imports.completed')
        .where('entity_id', '=', id)
        .execute()
      expect(ends).toHaveLength(1)
    })
  }, 600_000)
})
