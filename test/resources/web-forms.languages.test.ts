// Web forms in their language: page, script, errors and numbers.
import { describe, expect, it } from 'vitest'
import { useServer } from '../support/using.ts'

const ids: Record<string, number> = {}
const server = useServer({ config: { locale: 'en-US', currency: 'EUR' } }, async (server) => {
  for (const [code, type] of [
    ['budget', 'number'],
    ['home', 'address'],
    ['site', 'url'],
    ['born', 'date'],
  ])
    await server.admin.post('/settings/attributes', { entity_type: 'persons', code, name: code, type })
  const { body } = await server.admin.get('/settings/attributes?per_page=100')
  for (const { id, code, entity_type } of body.data) ids[`${entity_type}.${code}`] = id
})

async function formIn(language: string | null, names: string[] = [], action = 'message'): Promise<string> {
  const { body, status, text } = await server.admin.post('/settings/web-forms', {
    title: 'Kontakt',
    language,
    submit_button_label: 'Senden',
    submit_success_action: action,
    submit_success_content: action === 'message' ? 'Danke.' : 'https://example.com/danke',
    create_lead: true,
    attributes: names.map((name) => ({
      attribute_id: ids[name],
      ...(name === 'leads.lead_value' && { default_value: 1234.5 }),
    })),
  })
  expect(status === 201 ? '' : text).toBe('')
  return `//web-forms/forms/${body.data.form_id}`
}

const everything = ['leads.lead_value', 'persons.budget', 'persons.home', 'persons.site', 'persons.born']
const who = { name: 'Grace', emails: [{ value: 'grace@example.org' }] }
const pageOf = async (path: string): Promise<string> =>
  (await server.anonymous.get(`${path}/form.html`, { headers: { accept: 'text/html' } })).text

describe('getWebFormPage', () => {
  it.each([
    ['de', 'Straße und Hausnummer', '1234,5', 'noch einmal'],
    ['fr', 'Numéro et rue', '1234,5', 'réessayer'],
    ['es', 'Calle y número', '1234,5', 'Inténtelo de nuevo'],
    [null, 'Street and number', '1234.5', 'Please try again'],
  ])('has the labels, numbers and script of %s', async (language, street, value, again) => {
    const path = await formIn(language, everything)
    const page = await pageOf(path)
    expect(page).toContain(`<html lang="${language ?? 'en'}" dir="ltr">`)
    for (const each of [street, `value="${value}"`, again]) expect(page).toContain(each)
    const { text: script } = await server.anonymous.get(`${path}/form.js`, { headers: { accept: 'text/javascript' } })
    for (const each of [street, again]) expect(script).toContain(each)
  })

  it('shows the language of the form to programs', async () => {
    expect((await server.anonymous.get(await formIn('de_at'))).body.data.language).toBe('de-AT')
    expect((await server.anonymous.get(await formIn(null))).body.data.language).toBe('en-US')
  })
})

describe('submitWebForm', () => {
  const sent = (leads: object, persons: object = {}) => ({ persons: { ...who, ...persons }, leads })

  it.each([
    ['de', '1.234,50', 1234.5],
    ['de', '1.234', 1234],
    ['de', '1234,5 €', 1234.5],
    ['de', 1234.5, 1234.5],
    ['en', '1,234.50', 1234.5],
    ['fr', '1\u00a0234,50', 1234.5],
    ['de-CH', '1’234.50', 1234.5],
  ])('on a form in %s, %j is %d', async (language, text, value) => {
    const path = await formIn(language, everything)
    const budget = typeof text === 'string' ? text.replace(' €', '') : text
    const { status, text: said } = await server.anonymous.post(path, sent({ lead_value: text }, { budget }))
    expect(status === 200 ? '' : said).toBe('')
    const { body } = await server.admin.get('/leads?sort=-id')
    expect(body.data[0].lead_value).toBe(value)
    const person = (await server.admin.get('/contacts/persons?sort=-id')).body.data[0]
    expect([person.custom_attributes.budget, person.language]).toEqual([value, language])
  })

  it.each([
    ['de', '1234.50', 'Bitte geben Sie eine Zahl wie 1.234,50 ein.'],
    ['de', '1,234.50', 'Bitte geben Sie eine Zahl wie 1.234,50 ein.'],
    ['en', '1,5', 'Must be a number such as 1,234.50.'],
    ['fr', 'mille', 'Veuillez saisir un nombre tel que 1\u202f234,50.'],
    ['de-CH', '1.234,50', /^Bitte geben Sie eine Zahl wie 1[’']234.50 ein.$/],
  ])('on a form in %s, %j is an error', async (language, text, sentence) => {
    const { status, body } = await server.anonymous.post(await formIn(language, everything), sent({ lead_value: text }))
    const expected = typeof sentence === 'string' ? sentence : expect.stringMatching(sentence)
    expect([status, body.errors]).toEqual([422, { 'leads.lead_value': [expected] }])
  })

  it('says every error of a visitor in the language of the form', async () => {
    const refused = sent(
      { lead_value: '-1' },
      {
        name: 'x'.repeat(101),
        emails: [{ value: 'nobody' }],
        budget: 'viel',
        site: 'example',
        born: 'gestern',
      },
    )
    const path = await formIn('de', everything)
    const { status, body } = await server.anonymous.post(path, refused)
    expect([status, body.errors]).toEqual([
      422,
      {
        'leads.lead_value': ['Der Wert muss mindestens 0 sein.'],
        'persons.name': ['Bitte geben Sie höchstens 100 Zeichen ein.'],
        'persons.emails.0.value': ['Bitte geben Sie eine E-Mail-Adresse ein.'],
        'persons.budget': ['Bitte geben Sie eine Zahl wie 1.234,50 ein.'],
        'persons.site': [expect.stringMatching(/^(Diese Angabe ist ungültig|Bitte geben Sie eine Webadresse .+)\.$/)],
        'persons.born': ['Bitte geben Sie ein Datum wie 2026-03-31 ein.'],
      },
    ])
    const english = await server.anonymous.post(await formIn(null, everything), refused)
    expect(Object.keys(english.body.errors).sort()).toEqual(Object.keys(body.errors).sort())
  })

  it('thanks in the language of the form', async () => {
    const { body } = await server.anonymous.post(await formIn('es', [], 'redirect'), { persons: who })
    expect(body).toEqual({ message: 'Muchas gracias.', redirect: 'https://example.com/danke' })
  })

  it('refuses a form with a language that is not a tag', async () => {
    const { status, body } = await server.admin.post('/settings/web-forms', {
      title: 'x',
      language: 'Deutsch!',
      submit_button_label: 'x',
      submit_success_action: 'message',
      submit_success_content: 'x',
    })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['language']])
  })
})
