// The invented company of `accord demo`: Brightwater Instruments sells sensors for water quality.
// All names are invented. The domains end in .example, a reserved top-level domain.

export interface Seller {
  name: string
  email: string
}

export const sellers: readonly Seller[] = [
  { name: 'Maya Lindqvist', email: 'maya@brightwater.example' },
  { name: 'Tomás Herrera', email: 'tomas@brightwater.example' },
  { name: 'Aiko Tanaka', email: 'aiko@brightwater.example' },
]

export const demoProducts = [
  { sku: 'BW-PH1', name: 'pH sensor PH1', price: 420, quantity: 180, description: 'Glass-free electrode, IP68.' },
  { sku: 'BW-OX2', name: 'Oxygen sensor OX2', price: 690, quantity: 95, description: 'Optical, 10 m cable.' },
  {
    sku: 'BW-TB3',
    name: 'Turbidity sensor TB3',
    price: 880,
    quantity: 60,
    description: '0 to 1000 NTU, wiper included.',
  },
  { sku: 'BW-CL4', name: 'Chlorine sensor CL4', price: 760, quantity: 72, description: 'Amperometric, free chlorine.' },
  { sku: 'BW-GW1', name: 'Gateway GW1', price: 1290, quantity: 40, description: 'LTE and LoRaWAN, eight sensors.' },
  {
    sku: 'BW-SV1',
    name: 'Service plan, one year',
    price: 540,
    quantity: 500,
    description: 'Calibration twice a year.',
  },
  { sku: 'BW-TR1', name: 'Training day', price: 950, quantity: 100, description: 'On site, up to ten people.' },
] as const

/**
 * Organizations. Each entry is [name, city, country code, street, domain, persons]. A person is
 * "name|job title".
 */
export const demoOrganizations = [
  [
    'Stadtwerke Lindau',
    'Lindau',
    'DE',
    'Auenstraße 12',
    'sw-lindau.example',
    ['Jonas Weber|Plant manager', 'Katrin Vogel|Purchasing'],
  ],
  [
    'Harbor City Water',
    'Portland',
    'US',
    '410 Dock Street',
    'harborwater.example',
    ['Denise Carter|Operations director', 'Luis Romero|Process engineer'],
  ],
  [
    'Fjordfisk AS',
    'Bergen',
    'NO',
    'Kaigata 7',
    'fjordfisk.example',
    ['Ingrid Solheim|Head of farming', 'Per Aasen|Site lead'],
  ],
  [
    'Copper Kettle Brewing',
    'Leeds',
    'GB',
    '8 Mill Lane',
    'copperkettle.example',
    ['Oliver Shaw|Head brewer', 'Priya Nair|Quality manager'],
  ],
  [
    'Aqua Parque Lisboa',
    'Lisboa',
    'PT',
    'Rua das Flores 31',
    'aquaparque.example',
    ['Marta Figueira|Technical director'],
  ],
  [
    'Grand Hotel Belvedere',
    'Lugano',
    'CH',
    'Via Riva 5',
    'belvedere.example',
    ['Luca Bernasconi|Facility manager', 'Anna Keller|Purchasing'],
  ],
  ['Green Valley Dairy', 'Cork', 'IE', 'Mallow Road 2', 'greenvalley.example', ['Sean O’Brien|Site engineer']],
  [
    'Nordic Spa Group',
    'Turku',
    'FI',
    'Rantatie 14',
    'nordicspa.example',
    ['Elina Koskinen|Operations', 'Mikko Laine|Maintenance'],
  ],
  [
    'Laguna Shrimp Farms',
    'Guayaquil',
    'EC',
    'Avenida del Mar 88',
    'lagunashrimp.example',
    ['Camila Torres|Production manager'],
  ],
  [
    'Waterschap Zuid',
    'Breda',
    'NL',
    'Singel 19',
    'waterschapzuid.example',
    ['Daan de Vries|Measurement lead', 'Sanne Bakker|Project buyer'],
  ],
  [
    'Pure Springs Bottling',
    'Vichy',
    'FR',
    '3 rue des Sources',
    'puresprings.example',
    ['Hélène Marchand|Quality director'],
  ],
  [
    'Blue Ridge Hatchery',
    'Asheville',
    'US',
    '77 Creek Road',
    'blueridge.example',
    ['Hannah Brooks|Owner', 'Cole Jensen|Technician'],
  ],
  ['Kyoto Onsen Works', 'Kyoto', 'JP', 'Kawabata 4-2', 'kyoto-onsen.example', ['Haruto Mori|Chief engineer']],
  [
    'Riverside Schools',
    'Dayton',
    'US',
    '1200 Elm Avenue',
    'riversideschools.example',
    ['Grace Palmer|Pool supervisor'],
  ],
  ['Vinhos do Vale', 'Pinhão', 'PT', 'Quinta do Vale', 'vinhosdovale.example', ['Rui Cardoso|Cellar master']],
  [
    'Oresund Desalination',
    'Malmö',
    'SE',
    'Hamngatan 22',
    'oresund-desal.example',
    ['Sofia Bergström|Project manager', 'Emil Nyberg|Instrumentation'],
  ],
  [
    'Pacific Reef Aquarium',
    'Monterey',
    'US',
    '9 Cannery Row',
    'pacificreef.example',
    ['Noah Fischer|Life support lead'],
  ],
  [
    'Tatra Chemicals',
    'Poprad',
    'SK',
    'Priemyselná 6',
    'tatrachem.example',
    ['Zuzana Horváthová|Waste water', 'Peter Kováč|Purchasing'],
  ],
] as const

export const demoTags = [
  ['Utility', '#0B6FA8'],
  ['Food & drink', '#2E7D32'],
  ['Aquaculture', '#00838F'],
  ['Trade fair', '#8E5BB5'],
  ['Price sensitive', '#C2571A'],
  ['Reference customer', '#B8860B'],
] as const

export const lostReasons = [
  'The budget was moved to next year.',
  'They stay with the present supplier.',
  'A competitor offered a shorter delivery time.',
  'The project was stopped.',
]

export const notes = [
  'Uses 4–20 mA today; wants Modbus. Sent the wiring guide.',
  'Asked for a reference in the same industry. Lindau agreed to take a call.',
  'Decision is made by the board; the next meeting is at the end of the month.',
  'Two sites first, four more if the first season goes well.',
  'Needs an offer in writing before the budget round.',
  'Calibration is done in house, so the service plan is optional.',
  'Cable length matters: 25 m instead of 10 m at the outlet.',
]

export const questions = [
  'Thank you for the quick reply. Does the sensor work below 4 °C, and how often does it need calibration?',
  'That looks good. Could you add an on-site training day and tell us the delivery time?',
  'We compared the offer with last year’s. Is there a discount from ten pieces on?',
  'Please send the data sheet of the gateway. Our network allows LoRaWAN only.',
  'We would like to see the device at our plant. Is next week possible?',
]
