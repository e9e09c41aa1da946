/** Line drawings of 16 by 16. They stand beside words and say nothing of their own. */
import type { ReactNode } from 'react'

export function Icon({ path, size = 16 }: { readonly path: string; readonly size?: number }): ReactNode {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
      className="shrink-0"
    >
      <path d={path} />
    </svg>
  )
}
