// The contacts of address books.
import { emailAs, fallback, type Layout, names, part, phoneAs } from './layout.ts'

/** The labels that Google itself adds to contacts. */
const googleGroups = {
  ...{ '* mycontacts': null, '* other contacts': null, '* starred': null },
  ...{ '* friends': null, '* family': null, '* coworkers': null, '* my contacts': null },
}

export const contactLayouts: readonly Layout[] = [
  {
    name: 'google-contacts',
    type: 'persons',
    marks: [
      ['first name'],
      ['organization title', 'organization name'],
      ['labels'],
      ['file as', 'phonetic first name'],
    ],
    columns: {
      ...names,
      'file as': fallback('name'),
      'e mail # value': { fields: ['emails'], labelColumn: 'e mail # label' },
      'phone # value': { fields: ['contact_numbers'], labelColumn: 'phone # label' },
      'organization name': 'organization_name',
      'organization title': 'job_title',
      labels: { fields: ['tags'], values: googleGroups },
    },
  },
  {
    name: 'google-contacts-2019',
    type: 'persons',
    marks: [['given name'], ['family name'], ['group membership', 'yomi name', 'e mail 1 type', 'e mail 1 value']],
    columns: {
      ...names,
      name: fallback('name'),
      'e mail # value': { fields: ['emails'], labelColumn: 'e mail # type' },
      'phone # value': { fields: ['contact_numbers'], labelColumn: 'phone # type' },
      'organization # name': 'organization_name',
      'organization # title': 'job_title',
      'group membership': { fields: ['tags'], values: googleGroups },
    },
  },
  {
    name: 'outlook-contacts',
    type: 'persons',
    marks: [
      ['first name', 'last name'],
      ['business phone', 'business street', 'home phone', 'business fax', 'mobile phone'],
      ['e mail address', 'e mail 2 address', 'e mail display name', 'email address'],
    ],
    columns: {
      ...names,
      title: part(1),
      'e mail address|e mail # address|email address|email # address': 'emails',
      'business phone|business phone #|company main phone|primary phone': phoneAs('work'),
      'home phone|home phone #': phoneAs('home'),
      'mobile phone|mobile phone #|car phone': phoneAs('mobile'),
      'business fax|home fax|other fax': phoneAs('fax'),
      'assistant s phone': phoneAs('assistant'),
      pager: phoneAs('pager'),
      'callback|isdn|other phone|other phone #|radio phone|tty tdd phone|telex': phoneAs('other'),
      company: 'organization_name',
      'job title': 'job_title',
      categories: 'tags',
    },
  },
  {
    name: 'outlook-contacts-de',
    type: 'persons',
    marks: [
      ['vorname'],
      ['nachname'],
      ['e mail adresse', 'e mail 2 adresse'],
      ['telefon geschaftlich', 'mobiltelefon', 'firma'],
    ],
    columns: {
      anrede: part(1),
      vorname: part(2),
      'weitere vornamen': part(3),
      nachname: part(4),
      suffix: part(5),
      'e mail adresse|e mail # adresse': 'emails',
      'telefon geschaftlich|telefon geschaftlich #|telefon firma|haupttelefon': phoneAs('work'),
      'telefon privat|telefon privat #': phoneAs('home'),
      'mobiltelefon|mobiltelefon #|autotelefon': phoneAs('mobile'),
      'fax geschaftlich|fax privat|weiteres fax': phoneAs('fax'),
      pager: phoneAs('pager'),
      'weiteres telefon|ruckmeldung|telefon assistent': phoneAs('other'),
      firma: 'organization_name',
      position: 'job_title',
      kategorien: 'tags',
    },
  },
  {
    name: 'thunderbird-contacts',
    type: 'persons',
    marks: [['primary email'], ['secondary email'], ['display name', 'screen name']],
    columns: {
      'first name': part(2),
      'last name': part(4),
      'display name': fallback('name'),
      'primary email': 'emails',
      'secondary email': emailAs('other'),
      'work phone': phoneAs('work'),
      'home phone': phoneAs('home'),
      'fax number': phoneAs('fax'),
      'pager number': phoneAs('pager'),
      'mobile number': phoneAs('mobile'),
      'job title': 'job_title',
      organization: 'organization_name',
    },
  },
]
