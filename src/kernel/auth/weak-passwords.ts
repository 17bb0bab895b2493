// Passwords that guessing begins with (DOMAIN 6.3): the commonest ones, and the account's own address and name.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fold } from '../values/format.ts'

/** Shorter ones are refused by the contract. */
const minLength = 8

let commonest: ReadonlySet<string> | undefined

/** Read when the first password is set: few requests need the list. */
function commonestPasswords(): ReadonlySet<string> {
  if (commonest) return commonest
  // As JSON, which takes a tenth of the time that the module of the package takes.
  const file = createRequire(import.meta.url).resolve('@zxcvbn-ts/language-common/src/passwords.json')
  const all = JSON.parse(readFileSync(file, 'utf8')) as string[]
  commonest = new Set(all.filter(({ length }) => length >= minLength))
  return commonest
}

/** Why a password is refused, as a sentence; undefined when it may be used. */
export function weaknessOf(password: string, { email, name }: { email: string; name: string }): string | undefined {
  const bare = password.trim()
  if (fold(bare) === fold(email)) return 'Must not equal the e-mail address.'
  if (fold(bare) === fold(name)) return 'Must not equal the name.'
  if (commonestPasswords().has(bare.toLowerCase())) return 'Is one of the commonest passwords. Choose another one.'
  return undefined
}
