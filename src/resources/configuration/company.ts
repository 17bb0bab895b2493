// Reads the settings of printed documents: the seller's name, address, tax number, logo and terms,
// the form of the numbers of quotes, and for how long a quote is valid.
import { buffer } from 'node:stream/consumers'
import type { Context } from '../../kernel/context.ts'
import { fileRows } from '../files/rows.ts'
import { type ConfigurationCode, initialNumberFormat, initialValidDays } from './keys.ts'
import { storedValues } from './values.ts'

export interface Company {
  name: string
  address: string
  taxId: string
  /** The terms of all quotes; absent in a quote that was sent before there were any. */
  terms?: string
  logo: Uint8Array | null
}

/** The seller with the id of the logo file in place of its bytes. */
export type StoredCompany = Omit<Company, 'logo'> & { logoFileId: number | null }

export async function companyOf(ctx: Context): Promise<StoredCompany> {
  const stored = await storedValues(ctx)
  const text = (code: ConfigurationCode): string => {
    const value = stored.get(code)
    return typeof value === 'string' ? value.trim() : ''
  }
  const logo = stored.get('general.company.logo' satisfies ConfigurationCode)
  return {
    name: text('general.company.name') || ctx.services.config.appName,
    address: text('general.company.address'),
    taxId: text('general.company.tax_id'),
    terms: text('quotes.terms'),
    logoFileId: typeof logo === 'number' ? logo : null,
  }
}

/** Returns the form of the numbers of quotes. */
export async function quoteNumberFormat(ctx: Context): Promise<string> {
  const code = 'quotes.number.format' satisfies ConfigurationCode
  const format = (await storedValues(ctx)).get(code)
  return typeof format === 'string' ? format : initialNumberFormat
}

/** Returns the days after which the quote of a lead expires. */
export async function quoteValidDays(ctx: Context): Promise<number> {
  const code = 'quotes.valid_days' satisfies ConfigurationCode
  const days = (await storedValues(ctx)).get(code)
  return typeof days === 'number' ? days : initialValidDays
}

/**
 * Returns the seller with the bytes of the logo. They are null when they are missing, which
 * `accord doctor` reports.
 */
export async function withLogo(ctx: Context, { logoFileId: id, ...company }: StoredCompany): Promise<Company> {
  return { ...company, logo: id === null ? null : await bytesOf(ctx, id) }
}

async function bytesOf(ctx: Context, id: number): Promise<Uint8Array | null> {
  const [row] = await fileRows(ctx, [id])
  const source = row && (await ctx.services.files.find(row.sha256))
  return source ? new Uint8Array(await buffer(source.read(0, source.size - 1))) : null
}
