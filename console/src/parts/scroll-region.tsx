/** Text that scrolls on its own. It has a name and takes the focus, so that it can be read by keyboard. */
import type { ReactNode } from 'react'

export interface ScrollRegionProps {
  readonly label: string
  readonly className?: string
  readonly children: ReactNode
}

export function ScrollRegion({ label, className = 'max-h-96', children }: ScrollRegionProps): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable for the arrow keys
    <section className={`code ${className}`} aria-label={label} tabIndex={0}>
      {children}
    </section>
  )
}
