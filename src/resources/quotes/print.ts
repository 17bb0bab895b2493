// Prints a quote as a PDF. document.ts has the layout, and print.entry.ts draws the
// PDF in a subprocess.
import type { Context } from '../../kernel/context.ts'
import { download } from '../../kernel/files/download.ts'
import { draw } from '../../kernel/files/drawing.ts'
import type { Handler } from '../../kernel/handler.ts'
import { programAt } from '../../kernel/runtime/offload.ts'
import { today } from '../../kernel/values/format.ts'
import { companyOf } from '../configuration/company.ts'
import type * as Entry from './print.entry.ts'
import { quotes } from './resource.ts'

const print = programAt<typeof Entry>(import.meta.url, './print.entry')

/** The maximum number of bytes of the quote's subject in the file name of the PDF. */
const maxSubjectLength = 200

export const printQuote: Handler<'printQuote'> = async (ctx, { params }) => {
  const { timezone, appName, locale, currency } = ctx.services.config
  const quote = await quotes.get(ctx, params.id)
  const date = today(new Date(quote.created_at), timezone)
  const seller = await companyOf(ctx)
  const organization = await organizationOf(ctx, quote.person_id)
  const body = await draw(ctx, print, { quote, date, seller, organization, config: { appName, locale, currency } })
  return download({ mediaType: 'application/pdf', body, name: `Quote_${shortened(quote.subject)}_${date}.pdf` })
}

/**
 * Returns the name of the customer's organization, or null without an organization. Visibility is
 * not checked, because every reference to an organization shows its name.
 */
async function organizationOf({ db }: Context, personId: number): Promise<string | null> {
  const row = await db
    .selectFrom('persons')
    .innerJoin('organizations', 'organizations.id', 'persons.organization_id')
    .select('organizations.name')
    .where('persons.id', '=', personId)
    .executeTakeFirst()
  return row?.name ?? null
}

function shortened(subject: string): string {
  let kept = ''
  for (const character of subject) {
    if (Buffer.byteLength(kept + character) > maxSubjectLength) break
    kept += character
  }
  return kept.trim()
}
