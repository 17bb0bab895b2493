// Recognizes URLs of PostgreSQL databases, and hides or splits off their passwords.

export const isPostgresUrl = (url: string): boolean => /^postgres(ql)?:\/\//.test(url)

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

/** Returns why the parameters of a database URL are refused, or null. */
export function urlFault(url: string): string | null {
  const parameters = new URLSearchParams(url.split('?').slice(1).join('?'))
  if (parameters.has('schema'))
    return 'has the parameter schema, which PostgreSQL does not know; name the schema by options=-csearch_path%3D<schema>'
  const mode = parameters.get('sslmode')
  if (mode !== null && !sslModes.includes(mode)) return `has an unknown sslmode; known are ${sslModes.join(', ')}`
  return null
}

const optionsParameter = /([?&])options=([^&]*)(&|$)/

/** Splits the connection options off the URL, such as `-c search_path=crm`. */
export function splitOptions(url: string): { url: string; options: string } {
  const found = optionsParameter.exec(url)
  if (!found) return { url, options: '' }
  const plain = url.replace(optionsParameter, (_, before: string, __, after: string) => (after === '' ? '' : before))
  return { url: plain, options: new URLSearchParams(found[0].slice(1)).get('options') ?? '' }
}

const passwordParameter = /([?&](?:ssl)?password=)([^&]*)/

/**
 * Replaces the password in the URL by `***`. The text up to the last `@` counts as the password, so
 * that a password with an unescaped `@` or `/` is hidden completely.
 */
export const hidePassword = (url: string): string =>
  url.replace(/^(postgres(?:ql)?:\/\/[^:@/?]*):.*@/, '$1:***@').replace(passwordParameter, '$1***')

/**
 * Splits the password off the URL. Every user of the machine can read the arguments of a program,
 * so the password must not be an argument.
 */
export function splitPassword(url: string): { url: string; password: string | null } {
  const [, head = '', inside, rest = url] = /^(postgres(?:ql)?:\/\/[^:@/?#]*):([^/?#]*)(@.*)$/.exec(url) ?? []
  const named = /[?&]password=([^&]*)/.exec(rest)?.[1]
  const plain = rest.replace(/([?&])password=[^&]*(&|$)/, (_, before: string, after: string) =>
    after === '' ? '' : before,
  )
  const password = named ?? inside
  return { url: `${head}${plain}`, password: password === undefined ? null : decodeURIComponent(password) }
}
