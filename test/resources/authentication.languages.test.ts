// Mails about passwords come in the language of the installation, because users have none.
import { describe, expect, it } from 'vitest'
import { createMailer } from '../../src/mail/outbound.ts'
import { openMailbox } from '../support/mailbox.ts'
import { useOne, useServer } from '../support/using.ts'

const mailbox = useOne(openMailbox)
const server = useServer(() => ({
  mailer: createMailer({ url: mailbox.url, domain: 'crm.example' }),
  config: { appUrl: 'https://crm.example', appName: "L'<App> {x}" },
}))

describe('forgotPassword', () => {
  it.each([
    ['de-AT', "Ihr Passwort für L'<App> {x} zurücksetzen", 'Guten Tag', '60 Minuten'],
    ['fr', "Réinitialisation de votre mot de passe L'<App> {x}", 'Bonjour', '60 minutes'],
    ['es', "Restablecer su contraseña de L'<App> {x}", 'Hola', '60 minutos'],
    [null, "Reset your password for L'<App> {x}", 'Hello', '60 minutes'],
  ])('mails in %s', async (language, subject, hello, minutes) => {
    const code = 'general.general.locale_settings.locale'
    expect((await server.admin.put('/settings/configuration', { values: { [code]: language } })).status).toBe(200)
    await server.anonymous.post('/forgot-password', { email: 'admin@example.com' })
    server.clock.advanceMs(2_000)
    await server.work()
    const [mail] = await mailbox.take()
    expect(mail?.subject).toBe(subject)
    for (const each of [hello, minutes, "L'<App> {x}"]) expect(mail?.text).toContain(each)
    expect(mail?.html).toContain('L&#39;&lt;App&gt; {x}')
  })
})
