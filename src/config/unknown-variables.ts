// Refuses environment variables that begin with ACCORD_ but are not settings. Otherwise a
// misspelled setting would have no effect, without a message.
import { nearest } from '../contract/input/did-you-mean.ts'
import { ConfigError } from './parsers.ts'

/**
 * Prefixes that no setting has. Variables of listener modules begin with `ACCORD_EXT_`, those of
 * the tests with `ACCORD_TEST_`.
 */
const foreignPrefixes = ['ACCORD_EXT_', 'ACCORD_TEST_']

/**
 * Matches the variables that Kubernetes and Docker links set for a service whose name begins with
 * `accord`, such as `ACCORD_CRM_SERVICE_HOST`. They are ignored, because an operator cannot always
 * turn them off.
 */
const serviceVariable = /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/
const serviceAddress = /^(tcp|udp|sctp):\/\//

/**
 * Throws ConfigError when a variable that begins with `ACCORD_` is missing in `settings` and in
 * `former`. The message lists all of these variables, without their values. An empty variable
 * counts as unset.
 */
export function refuseUnknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  settings: readonly string[],
  former: readonly string[],
): void {
  const known = new Set([...settings, ...former])
  const unknown = Object.entries(environment).flatMap(([name, value]) =>
    name.startsWith('ACCORD_') && value && !known.has(name) && !isForeign(name, value) ? [name] : [],
  )
  const [first, ...others] = unknown.sort()
  if (first === undefined) return
  const sentences = [problemOf(first, settings), ...others.map((name) => `${name} ${problemOf(name, settings)}`)]
  throw new ConfigError(first, `${sentences.join('\n')}\nTo list all settings, run: accord serve --help`)
}

const isForeign = (name: string, value: string): boolean =>
  foreignPrefixes.some((prefix) => name.startsWith(prefix)) ||
  serviceVariable.test(name) ||
  (name.endsWith('_PORT') && serviceAddress.test(value))

function problemOf(name: string, settings: readonly string[]): string {
  const meant = nearest(name, settings)
  return meant === undefined ? 'is not a setting.' : `is not a setting. Did you mean ${meant}?`
}
