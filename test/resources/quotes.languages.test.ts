// Printed quotes in the language of the customer: labels, dates, amounts, countries and file name.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { linesOf, textOf } from '../support/pdf.ts'
import { useServer } from '../support/using.ts'

const server = useServer({ config: { locale: 'en-GB', currency: 'EUR' } })

async function quoteFor(language: string | null, changes: object = {}): Promise<number> {
  const make = given(server.admin)
  const person = await make.person({ name: 'Erika Muster', language })
  const { id } = await make.quote({
    subject: 'Donaudampfschifffahrtsgesellschaftskapitänsmützen',
    person_id: person.id,
    billing_address: { address: 'Hauptstraße 1', city: 'Wien', country: 'AT', postcode: '1010', state: null },
    items: [{ name: 'Sitzplatz', quantity: 2, price: 1234.5, tax_percent: 20 }],
    ...changes,
  })
  return id
}

async function printed(id: number): Promise<{ lines: string; name: string }> {
  const { headers, rawPayload, statusCode } = await server.inject({
    url: `/api/admin/quotes/${id}/print`,
    headers: { authorization: `Bearer ${server.admin.token}` },
  })
  expect(statusCode).toBe(200)
  const lines = linesOf(textOf(rawPayload))
    .join('\n')
    .replaceAll(/[\u00a0\u202f]/g, ' ')
  return { lines, name: String(headers['content-disposition']) }
}

describe('printQuote', { timeout: 60_000 }, () => {
  it.each([
    ['de', ['Angebot', 'RECHNUNG AN', 'GÜLTIG BIS', 'Gesamtbetrag', '2.469,00 €', 'Steuer, 20 % auf', 'Österreich']],
    ['fr-CA', ['Devis', 'FACTURER À', 'Sous-total', '2 469,00 €', 'Taxe, 20 % sur', 'Autriche', 'Page 1 sur 1']],
    ['es', ['Presupuesto', 'VÁLIDO HASTA', '2469,00 €', 'Impuesto, 20 % sobre', 'Austria', 'Página 1 de 1']],
    ['de-CH', ['Angebot', "2'469.00", 'Steuer, 20% auf']],
    [null, ['Quote', 'BILL TO', '€2,469.00', 'Tax, 20% on', 'Austria', '1 Mar 2026']],
    ['xx', ['Quote', 'BILL TO', '€2,469.00']],
  ])('has the labels, numbers and countries of %s', async (language, expected) => {
    const { lines, name } = await printed(await quoteFor(language))
    for (const each of expected) expect(lines.replaceAll('’', "'")).toContain(each)
    expect(name).toContain(expected[0])
  })

  it.each([
    ['de', 'Rabatt (5 % auf alle Positionen)'],
    ['fr', 'Remise (5 % sur tous les articles)'],
    ['es', 'Descuento (5 % en todos los conceptos)'],
    ['en-GB', 'Discount (5% on all items)'],
  ])('names a discount on all items in %s', async (language, label) => {
    const { lines } = await printed(await quoteFor(language, { discount_percent: 5 }))
    expect(lines).toContain(label)
  })

  it('keeps the language of a sent quote, whatever the person speaks later', async () => {
    const id = await quoteFor('de')
    const { body } = await server.admin.get(`/quotes/${id}`)
    expect((await server.admin.put(`/quotes/${id}`, { status: 'sent' })).status).toBe(200)
    await server.admin.put(`/contacts/persons/${body.data.person_id}`, { language: 'fr' })
    expect((await printed(id)).lines).toContain('Gesamtbetrag')
  })

  it('follows the configuration of the installation', async () => {
    const code = 'general.general.locale_settings.locale'
    const { status } = await server.admin.put('/settings/configuration', { values: { [code]: 'fr' } })
    expect(status).toBe(200)
    expect((await printed(await quoteFor(null))).lines).toContain('Sous-total')
    expect((await printed(await quoteFor('en'))).lines).toContain('Subtotal')
  })
})
