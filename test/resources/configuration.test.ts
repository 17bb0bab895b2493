// Rules of the configuration that the generated contract tests do not check.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { useNewServers } from '../support/using.ts'

const path = '/settings/configuration'
const password = 'email.imap.account.password'
const leads = 'general.settings.menu.leads'

const server = useNewServers()

const save = (values: object) => server.admin.put(path, { values })
const entry = async (code: string) =>
  (await server.admin.get(path)).body.data.find((each: { code: string }) => each.code === code)

describe('getConfiguration', () => {
  it('lists every key with its default while nothing is set', async () => {
    const { body } = await server.admin.get(path)
    expect(body.data).toHaveLength(36)
    expect(body.data.every((each: { is_set: boolean }) => !each.is_set)).toBe(true)
    expect(await entry('general.settings.menu_color.brand_color')).toEqual({
      code: 'general.settings.menu_color.brand_color',
      value: '#0E90D9',
      type: 'color',
      default: '#0E90D9',
      is_set: false,
      is_secret: false,
    })
    expect(await entry('email.imap.account.port')).toMatchObject({ value: 993, type: 'integer' })
  })
})

describe('saveConfiguration', () => {
  it('sets what is sent, leaves the rest, and resets with null, with one event each time', async () => {
    const saved = await save({ [leads]: 'Deals', 'email.imap.account.port': 143 })
    expect(saved.status).toBe(200)
    expect(server.seen.at(-1)?.changed).toEqual([leads, 'email.imap.account.port'])
    expect(server.events()).toEqual(['core.configuration.save.before', 'core.configuration.save.after'])
    expect(await entry(leads)).toMatchObject({ value: 'Deals', default: 'Leads', is_set: true })
    await save({ [leads]: null })
    expect(await entry(leads)).toMatchObject({ value: 'Leads', is_set: false })
    expect(await entry('email.imap.account.port')).toMatchObject({ value: 143 })
  })

  it('holds to If-Match: a change made since, of a secret too, is 412 and leaves everything', async () => {
    const tag = async () => String((await server.admin.get(path)).headers.etag)
    const put = (values: object, match: string) =>
      server.admin.put(path, { values }, { headers: { 'if-match': match } })
    const first = await tag()
    const saved = await put({ [leads]: 'Ours' }, first)
    expect([saved.status, saved.headers.etag]).toEqual([200, await tag()])
    expect((await put({ [leads]: 'Theirs' }, first)).body.code).toBe('version_mismatch')
    expect((await put({ [leads]: 5 }, first)).status).toBe(422)
    const second = await tag()
    await server.admin.put(path, { values: { 'email.imap.account.password': 'one' } })
    const third = await tag()
    await server.admin.put(path, { values: { 'email.imap.account.password': 'two' } })
    const fourth = await tag()
    await server.admin.put(path, { values: { 'email.imap.account.password': 'two' } })
    expect([new Set([first, second, third, fourth]).size, await tag()]).toEqual([4, fourth])
    expect((await put({ [leads]: 'Theirs' }, third)).status).toBe(412)
    expect((await put({ [leads]: 'Theirs' }, '*')).status).toBe(200)
    const seen = await server.admin.get(path, { headers: { 'if-none-match': await tag() } })
    expect(seen.status).toBe(304)
  })

  it('takes back what GET shows, and calls it no change; one other value is a change', async () => {
    await save({ [password]: 'secret', [leads]: 'Deals' })
    const shown = await server.admin.get(path)
    server.seen.splice(0)
    const { status, headers } = await server.admin.put(path, shown.body)
    expect([status, headers.etag, server.seen.at(-1)?.changed]).toEqual([200, shown.headers.etag, []])
    const data = shown.body.data.map((each: { code: string }) =>
      each.code === leads ? { ...each, value: 'Ours' } : each,
    )
    expect((await server.admin.put(path, { data })).status).toBe(200)
    expect(server.seen.at(-1)?.changed).toEqual([leads])
    const wrong = data.map((each: { code: string }) => (each.code === leads ? { ...each, value: 5 } : each))
    const refused = await server.admin.put(path, { data: wrong })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, [`values.${leads}`]])
    expect((await server.admin.put(path, {})).body.errors).toEqual({ values: ['The field is required.'] })
  })

  it('tells its history in words', async () => {
    await save({ [leads]: 'Deals', 'general.settings.menu_color.brand_color': '#112233' })
    const { body } = await server.admin.get(`${path}/history`)
    expect(body.data[0].changes).toEqual([
      { key: leads, label: 'Leads', old: 'Leads', new: 'Deals' },
      expect.objectContaining({ label: 'Brand Color', old: '#0E90D9', new: '#112233' }),
    ])
  })

  it('refuses an unknown key with a hint, an invalid language tag and an invalid color, and changes nothing', async () => {
    const unknown = await save({ 'general.settings.menu.lead': 'x' })
    expect(unknown.status).toBe(422)
    expect(JSON.stringify(unknown.body.errors)).toContain('Did you mean `general.settings.menu.leads`?')
    const wrong = await save({ 'general.general.locale_settings.locale': 'not a tag', [leads]: 'Deals' })
    expect(wrong.body.errors).toEqual({
      'values.general.general.locale_settings.locale': ['Must be a BCP 47 language tag such as en or de-AT.'],
    })
    expect((await save({ 'general.settings.menu_color.brand_color': 'red' })).status).toBe(422)
    expect(await entry(leads)).toMatchObject({ is_set: false })
    expect(server.events()).toEqual([])
  })

  it('stores a secret encrypted, and shows it in no reply, event, history or event log', async () => {
    const { body, text } = await save({ [password]: 'hunter2-of-the-mailbox' })
    expect(await entry(password)).toEqual({
      code: password,
      value: null,
      type: 'secret',
      default: null,
      is_set: true,
      is_secret: true,
    })
    const history = await server.admin.get(`${path}/history`)
    expect(history.body.data[0].changes).toEqual([expect.objectContaining({ key: password })])
    const stored =
      await sql`select value from core_config union all select before from events union all select after from events`.execute(
        server.store.db,
      )
    const everything = JSON.stringify([body, text, server.seen, history.body, stored.rows])
    expect(everything).not.toContain('hunter2')
    // Saving the same secret again is not a change.
    server.events()
    await save({ [password]: 'hunter2-of-the-mailbox' })
    expect(server.seen.at(-1)?.changed).toEqual([])
    expect((await server.admin.get(`${path}/history`)).body.meta.total).toBe(1)
  })

  it('takes markup out of the footer that could run', async () => {
    await save({ 'general.settings.footer.label': '<b>Hi</b><script>alert(1)</script><a href="javascript:x">y</a>' })
    expect((await entry('general.settings.footer.label')).value).toBe('<b>Hi</b><a>y</a>')
  })

  it('refuses a logo that does not exist', async () => {
    const { status, body } = await save({ 'general.general.admin_logo.logo_image': 99 })
    expect(status).toBe(422)
    expect(Object.keys(body.errors)).toEqual(['values.general.general.admin_logo.logo_image'])
  })
})
