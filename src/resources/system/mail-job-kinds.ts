// The kinds of jobs whose definition says that they send mail.
import type { Services } from '../../kernel/context.ts'

export const mailJobKinds = ({ jobs }: Services): string[] =>
  [...jobs].flatMap(([kind, { isMail }]) => (isMail ? kind : []))
