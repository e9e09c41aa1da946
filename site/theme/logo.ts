/** The mark of the project: a glass dome with a seedling in it. Drawn with the colours of the style sheet, or with its own as an icon. */
import { type Markup, raw } from '../html.ts'

const dome = 'M5 27V14.5a11 11 0 0 1 22 0V27'
const stem = 'M16 27v-9.5'
const left = 'M16 19.5c-.4-3.6-2.6-5.4-6.2-5.6.1 3.8 2.4 5.9 6.2 5.6Z'
const right = 'M16 17c.2-3.9 2.4-6 6.4-6.4.2 4.2-2.2 6.6-6.4 6.4Z'

const draw = (glass: string, plant: string): string =>
  `<path d="${dome}" fill="none" stroke="${glass}" stroke-width="2" stroke-linecap="round"/>` +
  `<path d="M2.5 28h27" stroke="${glass}" stroke-width="2.4" stroke-linecap="round"/>` +
  `<path d="${stem}" stroke="${plant}" stroke-width="2" stroke-linecap="round"/><path d="${left}" fill="${plant}"/><path d="${right}" fill="${plant}"/>`

export const logo = (size: number): Markup =>
  raw(
    `<svg class="logo" width="${size}" height="${size}" viewBox="0 0 32 32" aria-hidden="true">${draw('var(--glass)', 'var(--accent)')}</svg>`,
  )

/** For the tab of a browser, which may be light or dark. */
export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${draw('#7d9488', '#3f8f68')}</svg>\n`
