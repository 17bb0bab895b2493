// Suggests the field of each column of a file, from the header and the values of the column. A
// field is suggested for at most one column.
import { nearest } from '../../contract/input/did-you-mean.ts'
import type { Schema } from '../../contract/types.ts'
import { fold } from '../../kernel/values/format.ts'
import type { ImportColumn, ImportType } from './columns.ts'
import type { ColumnValues } from './detect-formats.ts'

type Confidence = Schema<'ImportColumn'>['confidence']

export interface Suggestion {
  field: string | null
  confidence: Confidence
}

const company =
  'company|company name|organization|account|account name|customer|employer|firma|firmenname|unternehmen|kunde|empresa|entreprise|societe|azienda'
const email =
  'email|e mail|email address|e mail address|mail|primary email|contact email|e mail adresse|correo|correo electronico|courriel|adresse mail'
const tags = 'tag|labels|label|categories|schlagworte|etiquetas|etiquettes'

/**
 * Common headers of each field, separated by `|` and in the form that `normalizeHeader` returns.
 */
const usualNames: Record<ImportType, Readonly<Record<string, string>>> = {
  persons: {
    name: 'full name|contact|contact name|person|display name|ansprechpartner|kontakt|nombre|nom|nome',
    emails: email,
    contact_numbers:
      'phone|phone number|phones|telephone|telephone number|tel|mobile|mobile phone|cell|cell phone|telefon|telefonnummer|handy|mobil|telefono|numero de telephone',
    organization_name: company,
    job_title: 'title|position|role|job|function|funktion|stelle|cargo|poste|fonction',
    tags,
  },
  organizations: {
    name: company,
    'address.address': 'street|address|street address|address line 1|strasse|adresse|direccion|rue|via',
    'address.city': 'city|town|ort|stadt|ciudad|ville|citta',
    'address.postcode': 'zip|zip code|postal code|post code|plz|postleitzahl|codigo postal|code postal|cap',
    'address.state': 'state|province|region|county|bundesland|provincia',
    'address.country': 'country|country code|land|pais|pays|paese',
    tags,
  },
  products: {
    sku: 'article number|item number|product code|item code|part number|artikelnummer|referencia|reference',
    name: 'product|product name|item|item name|title|artikel|produkt|bezeichnung|producto|produit|nombre|nom',
    description: 'details|beschreibung|descripcion',
    price: 'unit price|sales price|list price|preis|einzelpreis|precio|prix|prezzo',
    quantity: 'qty|stock|in stock|menge|bestand|cantidad|quantite',
    tags,
  },
  leads: {
    title: 'lead|lead name|deal|deal name|opportunity|opportunity name|name|subject|titel|titulo|titre|betreff',
    description: 'notes|note|details|comment|comments|beschreibung|notizen|descripcion',
    lead_value: 'value|amount|deal value|deal amount|close value|wert|betrag|importe|valor|montant',
    person_email: email,
    expected_close_date: 'expected close|expected close date|expected closing date|forecast date|close date',
    closed_at: 'closed|closed on|closed date|date closed|closed time',
    lost_reason: 'loss reason|reason lost|reason for loss',
    tags,
  },
}

/**
 * Converts a header to lower-case words without accents, so that `CompanyName` equals
 * `company_name`.
 */
export const normalizeHeader = (header: string): string =>
  fold(header.replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2'))
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll('ß', 'ss')
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()

/** The minimum length of headers that are compared with similar names, for typing errors. */
const minSimilarLength = 5

type Rule = (column: ColumnValues) => string | undefined

export function suggestFields(
  type: ImportType,
  fields: ReadonlyMap<string, ImportColumn>,
  columns: readonly ColumnValues[],
): Suggestion[] {
  const found = columns.map((): Suggestion => ({ field: null, confidence: 'none' }))
  const taken = new Set<string>()
  const apply = (confidence: Confidence, rule: Rule): void => {
    for (const [index, column] of columns.entries()) {
      if (found[index]?.field !== null) continue
      const field = rule(column)
      if (field === undefined || taken.has(field) || !fields.has(field)) continue
      taken.add(field)
      found[index] = { field, confidence }
    }
  }
  // A column `ID` usually contains the ids of another system, so it is not suggested as the lead
  // id.
  const own = namesOf([...fields.values()].filter(({ name }) => name !== 'id'))
  const usual = new Map(
    Object.entries(usualNames[type]).flatMap(([field, names]) =>
      names.split('|').map((name) => [name, field] as const),
    ),
  )
  const similar = new Map([...usual, ...own].filter(([name]) => name.length >= minSimilarLength))
  apply('exact', ({ header }) => header)
  apply('exact', ({ header }) => own.get(normalizeHeader(header)))
  apply('likely', ({ header }) => usual.get(normalizeHeader(header)))
  apply('possible', fieldByValues(type))
  apply('possible', ({ header }) => {
    const name = normalizeHeader(header)
    return name.length < minSimilarLength ? undefined : similar.get(nearest(name, similar.keys()) ?? '')
  })
  return found
}

/** Returns a map from normalized name to field. Custom attributes occur by code and by name. */
const namesOf = (fields: readonly ImportColumn[]): Map<string, string> =>
  new Map(
    fields.flatMap(({ name, label }) => [name, label ?? name].map((each) => [normalizeHeader(each), name] as const)),
  )

const isEmail = (text: string): boolean => /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text)
const isPhone = (text: string): boolean => /^(\+|0|\()[\d\s()/.-]+$/.test(text) && text.replace(/\D/g, '').length >= 7

/** Returns a rule that recognizes e-mail addresses and telephone numbers. */
const fieldByValues =
  (type: ImportType): Rule =>
  ({ values }) => {
    const filled = values.map((value) => value.trim()).filter((value) => value !== '')
    if (filled.length === 0) return undefined
    if (filled.every(isEmail)) return type === 'leads' ? 'person_email' : 'emails'
    return filled.every(isPhone) ? 'contact_numbers' : undefined
  }
