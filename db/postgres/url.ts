// URLs of PostgreSQL databases: which texts are such URLs, and their passwords.

export const isPostgresUrl = (url: string): boolean => /^postgres(ql)?:\/\//.test(url)

const passwordParameter = /([?&](?:ssl)?password=)([^&]*)/

/**
 * Returns the URL with `***` for its password. A password with unescaped characters such as `@` and
 * `/` is hidden too, so the text up to the last `@` counts as the password.
 */
export const hidePassword = (url: string): string =>
  url.replace(/^(postgres(?:ql)?:\/\/[^:@/?]*):.*@/, '$1:***@').replace(passwordParameter, '$1***')

/**
 * Returns the URL without its password, and the password. Every user of the machine can read the
 * arguments of a program, so the password must not be one.
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
