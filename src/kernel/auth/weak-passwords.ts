// Detects passwords that attackers try first: the most common passwords, and the
// e-mail address and name of the account.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fold } from '../values/format.ts'

/**
 * The minimum length of a password in the contract. Shorter passwords need not be in the list of
 * common passwords.
 */
const minLength = 8

let commonest: ReadonlySet<string> | undefined

/**
 * Returns the most common passwords. The list is loaded on first use, because few requests set a
 * password.
 */
function commonestPasswords(): ReadonlySet<string> {
  if (commonest) return commonest
  // JSON loads ten times faster than the module of the package.
  const file = createRequire(import.meta.url).resolve('@zxcvbn-ts/language-common/src/passwords.json')
  const all = JSON.parse(readFileSync(file, 'utf8')) as string[]
  commonest = new Set(all.filter(({ length }) => length >= minLength))
  return commonest
}

/**
 * Returns a sentence with the reason why a password is refused; undefined when the password is
 * allowed.
 */
export function weaknessOf(password: string, { email, name }: { email: string; name: string }): string | undefined {
  const bare = password.trim()
  if (fold(bare) === fold(email)) return 'Must not equal the e-mail address.'
  if (fold(bare) === fold(name)) return 'Must not equal the name.'
  if (commonestPasswords().has(bare.toLowerCase())) return 'Is one of the commonest passwords. Choose another one.'
  return undefined
}
