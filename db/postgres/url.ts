// Recognizes URLs of PostgreSQL databases, and hides or splits off their passwords.

export const isPostgresUrl = (url: string): boolean => /^postgres(ql)?:\/\//.test(url)

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
