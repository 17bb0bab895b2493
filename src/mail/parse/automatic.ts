// Decides whether a program sent an e-mail (RFC 3834), such as an autoresponder, a mailing list or
// a bounce.

/** The subjects of automatic replies of Outlook, Exchange and Gmail in their languages. */
const automaticSubjects = [
  'automatic reply:',
  'auto reply:',
  'autoreply:',
  'out of office:',
  'out of office autoreply:',
  'automatische antwort:',
  'abwesenheitsnotiz:',
  'automatisch antwoord:',
  'réponse automatique',
  'absence du bureau',
  'respuesta automática:',
  'fuera de la oficina:',
  'resposta automática:',
  'risposta automatica:',
  'fuori sede:',
  'automatiskt svar:',
  'autosvar:',
  'automatisk svar:',
  'automaattinen vastaus:',
  'odpowiedź automatyczna:',
  'automatická odpověď:',
  'automatická odpoveď:',
  'automatikus válasz:',
  'răspuns automat:',
  'otomatik yanıt:',
  'αυτόματη απάντηση:',
  'автоматический ответ:',
  'автоматична відповідь:',
  '自動応答:',
  '自动答复:',
  '自動回覆:',
  '자동 회신:',
]

/** `first` returns the first value of a header by its lower-case name. */
export function isAutomaticMail(first: (name: string) => string | null, subject: string | null): boolean {
  const word = (name: string): string => /^\s*([\w-]*)/.exec(first(name) ?? '')?.[1]?.toLowerCase() ?? ''
  const start = (subject ?? '')
    .normalize('NFC')
    .trim()
    .toLowerCase()
    .replace(/ ?[:：]/, ':')
  return (
    !['', 'no'].includes(word('auto-submitted')) ||
    ['bulk', 'list', 'junk', 'auto_reply'].includes(word('precedence')) ||
    ['x-autoreply', 'x-autorespond'].some((name) => !['', 'no'].includes(word(name))) ||
    first('x-loop') !== null ||
    /\b(mailer|mail)-daemon@/i.test(first('from') ?? '') ||
    first('return-path')?.replaceAll(/\s/g, '') === '<>' ||
    /^\s*multipart\/report\b/i.test(first('content-type') ?? '') ||
    automaticSubjects.some((each) => start.startsWith(each))
  )
}
