// The language of the installation, and the texts of a language for customers.
import type { Context } from '../../kernel/context.ts'
import type { Texts } from '../../texts/texts.ts'
import type { ConfigurationCode } from './keys.ts'
import { storedValues } from './values.ts'

/**
 * Returns the texts of the first wanted language that has some. Otherwise those of the configured
 * language, or else of `ACCORD_LOCALE`.
 */
export async function textsFor(ctx: Context, ...wanted: readonly (string | null | undefined)[]): Promise<Texts> {
  const { config, languages } = ctx.services
  const set = (await storedValues(ctx)).get('general.general.locale_settings.locale' satisfies ConfigurationCode)
  return languages.pick(wanted, typeof set === 'string' ? set : config.locale)
}
