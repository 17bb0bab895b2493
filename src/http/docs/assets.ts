// The logo of the documentation pages, and their colors as CSS variables.

export const mark =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M4 26 16 6l12 20h-6.2L16 16.4 10.2 26z" fill="#3d9bd1"/><path d="M11 26h10l-5-8.2z" fill="#f2a33a"/></svg>'

export const pageColors =
  '--accent:light-dark(#0b6fa8,#7cc4ee);--line:light-dark(#d5dee5,#34424d);--soft:light-dark(#f4f7f9,#1a2228);--quiet:light-dark(#4a5a66,#a9b8c3);--page:light-dark(#fff,#11171b)'
