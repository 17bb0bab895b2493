// Reads the seller's details for printed documents: name, address, tax number and
// logo.
import { buffer } from 'node:stream/consumers'
import type { Context } from '../../kernel/context.ts'
import { fileRows } from '../files/rows.ts'
import type { ConfigurationCode } from './keys.ts'
import { storedValues } from './values.ts'

export interface Company {
  name: string
  address: string
  taxId: string
  logo: Uint8Array | null
}

export async function companyOf(ctx: Context): Promise<Company> {
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
    logo: typeof logo === 'number' ? await bytesOf(ctx, logo) : null,
  }
}

/**
 * Returns the bytes of a file, or null when they are missing. `accord doctor` reports missing
 * bytes.
 */
async function bytesOf(ctx: Context, id: number): Promise<Uint8Array | null> {
  const [row] = await fileRows(ctx, [id])
  const source = row && (await ctx.services.files.find(row.sha256))
  return source ? new Uint8Array(await buffer(source.read(0, source.size - 1))) : null
}
