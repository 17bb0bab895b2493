// Prototype pollution: wherever a caller chooses a key, `__proto__` and `constructor` are ordinary
// or unknown keys and do not change the prototype of objects.
import { afterEach, describe, expect, it } from 'vitest'
import { given } from '../../support/given.ts'
import { csvOf, importing } from '../../support/importing.ts'
import { useServer } from '../../support/using.ts'

const server = useServer()
afterEach(() => {
  // A successful attack would change every object.
  expect(Object.keys(Object.prototype)).toEqual([])
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  expect(Object.prototype.toString.call({})).toBe('[object Object]')
})

const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineGetter__']
const poison = (key: string, inner = '{"polluted": 1}'): string => `"${key}": ${inner}`

describe('a key that every object has', () => {
  it.each(names)('%s is unknown in bodies, at any depth', async (key) => {
    const { admin } = server
    const person = `"name": "Ada", "emails": [{"value": "ada@example.com"}]`
    for (const [path, body] of [
      ['/contacts/persons', `{${person}, ${poison(key)}}`],
      ['/contacts/persons', `{${person}, "custom_attributes": {${poison(key)}}}`],
      ['/contacts/persons', `{"name": "Ada", "emails": [{"value": "a@example.com", ${poison(key)}}]}`],
      ['/settings/configuration', `{${poison(key)}}`],
      ['/settings/roles', `{"name": "R", "permission_type": "custom", "permissions": ["${key}"]}`],
    ] as const) {
      const call = path.includes('configuration') ? admin.put : admin.post
      const { status, text } = await call(path, body)
      expect([400, 422], `${path} ${body}: ${text}`).toContain(status)
    }
    expect(server.events()).toEqual([])
  })

  it.each(names)(
    '%s is unknown in queries: as a filter, an operator, a sort key, an include and a field',
    async (key) => {
      for (const query of [
        `${key}=1`,
        `${key}[gt]=1`,
        `${key}[polluted]=1`,
        `id[${key}]=1`,
        `custom_attributes[${key}]=1`,
        `sort=${key}`,
        `sort=custom_attributes.${key}`,
        `include=${key}`,
        `fields=${key}`,
      ]) {
        const { status, text } = await server.admin.get(`/leads?${query}`)
        expect(status, `${query}: ${text}`).toBe(422)
      }
    },
  )

  it.each(names)('%s is unknown in forms, and among the columns of an import', async (key) => {
    const { admin, anonymous } = server
    const form = await admin.post('/settings/web-forms', {
      title: 'Contact',
      submit_button_label: 'Send',
      submit_success_action: 'message',
      submit_success_content: 'Thanks.',
    })
    const post = (body: string) =>
      anonymous.post(`//web-forms/forms/${form.body.data.form_id}`, body, {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
    const basic = 'persons[name]=Ada&persons[emails][0][value]=ada@example.com'
    for (const more of [`persons[${key}][polluted]=1`, `${key}[polluted]=1`, `persons[emails][0][${key}]=1`])
      expect((await post(`${basic}&${more}`)).status, more).toBe(422)

    const using = importing(admin)
    const { id } = await using.record(
      'persons',
      csvOf([
        ['name', 'emails', key],
        ['Ada', 'ada@example.com', '1'],
      ]),
    )
    expect(await using.post(id, 'validate')).toMatchObject({ state: 'invalid' })
    expect((await admin.get('/contacts/persons')).body.data).toEqual([])
  })

  it('is not a code of an attribute, so that no object has it by inheritance', async () => {
    const { admin } = server
    for (const entity_type of ['persons', 'organizations', 'leads', 'products', 'quotes', 'activities'])
      for (const code of names.filter((name) => name in Object.prototype)) {
        const sent = { entity_type, code, name: 'X', type: 'text' }
        expect((await admin.post('/settings/attributes', sent)).status, `${entity_type} ${code}`).toBe(422)
      }
  })

  it('names no event, no extension of a file and no kind of a report', async () => {
    const { admin } = server
    for (const key of names) {
      for (const path of [
        `/reports/${key}`,
        `/settings/data-transfer/import-samples/${key}`,
        `/search?q=ada&types=${key}`,
        `/settings/attributes?entity_type=${key}`,
        `/settings/configuration?code=${key}`,
      ])
        expect((await admin.get(path)).status, path).toBeLessThan(500)
      const webhook = { name: key, url: 'https://example.com/', events: [key, `${key}.*.after`] }
      expect((await admin.post('/settings/webhooks', webhook)).status).toBe(422)
    }
  })

  it('stands for nothing in templates', async () => {
    const { admin } = server
    const person = await given(admin).person({ name: 'Ada' })
    const placeholders = [
      ...names,
      ...names.map((key) => `persons.${key}`),
      'persons.name.constructor',
      'persons[name]',
    ]
    const content = placeholders.map((name) => `<p>{%${name}%}{% ${name}() %}</p>`).join('')
    const subject = '{%persons.constructor%} {%constructor%} {%persons.name%}'
    const refused = await admin.post('/settings/email-templates', { name: 'Hostile', subject, content })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['subject', 'content']])
    const { body } = await admin.post('/settings/email-templates', { name: 'Hostile', subject: 'x', content: 'x' })
    // Older versions accepted these texts, so a database may contain them.
    const older = server.store.db.updateTable('email_templates').set({ subject, content })
    await older.where('id', '=', body.data.id).execute()
    const preview = await admin.post(`/settings/email-templates/${body.data.id}/preview`, {
      entity_type: 'persons',
      entity_id: person.id,
    })
    expect(preview.body.data.subject).toBe('  Ada')
    expect(preview.text).not.toMatch(/native code|\[object|function/i)
  })
})
