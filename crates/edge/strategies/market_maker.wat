;; A sample strategy: quotes a tenth of a per cent around every batch price that it is shown.
;;
;; A packet is one of MoldUDP64 whose messages are lines such as {"height":7,"asset":3,"price":1.089000000}. Of each
;; message the second and third numbers count, asset and price; a price has nine decimals, so its digits are an integer.
;; For each message two orders leave, 13 bytes each, big-endian: side (0 bid, 1 ask), asset (4), price (8).
(module
  (import "walras" "order" (func $order (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "buffer") (result i32) (i32.const 4096))

  (func $store_big (param $at i32) (param $value i64) (param $bytes i32)
    (loop $next
      (local.set $bytes (i32.sub (local.get $bytes) (i32.const 1)))
      (i32.store8 (i32.add (local.get $at) (local.get $bytes)) (i32.wrap_i64 (local.get $value)))
      (local.set $value (i64.shr_u (local.get $value) (i64.const 8)))
      (br_if $next (local.get $bytes))))

  (func $quote (param $side i32) (param $asset i64) (param $price i64)
    (i32.store8 (i32.const 0) (local.get $side))
    (call $store_big (i32.const 1) (local.get $asset) (i32.const 4))
    (call $store_big (i32.const 5) (local.get $price) (i32.const 8))
    (drop (call $order (i32.const 0) (i32.const 0) (i32.const 13))))

  ;; The numbers of one message.
  (func $message (param $at i32) (param $end i32)
    (local $digit i32) (local $inside i32) (local $count i32)
    (local $value i64) (local $asset i64) (local $spread i64)
    (loop $next
      (if (i32.lt_u (local.get $at) (local.get $end)) (then
        (local.set $digit (i32.sub (i32.load8_u (local.get $at)) (i32.const 48)))
        (if (i32.lt_u (local.get $digit) (i32.const 10))
          (then
            (local.set $inside (i32.const 1))
            (local.set $value (i64.add (i64.mul (local.get $value) (i64.const 10))
              (i64.extend_i32_u (local.get $digit)))))
          (else (if (i32.and (local.get $inside) (i32.ne (local.get $digit) (i32.const -2))) (then
            (local.set $count (i32.add (local.get $count) (i32.const 1)))
            (if (i32.eq (local.get $count) (i32.const 2)) (then (local.set $asset (local.get $value))))
            (if (i32.eq (local.get $count) (i32.const 3)) (then
              (local.set $spread (i64.div_u (local.get $value) (i64.const 1000)))
              (call $quote (i32.const 0) (local.get $asset) (i64.sub (local.get $value) (local.get $spread)))
              (call $quote (i32.const 1) (local.get $asset) (i64.add (local.get $value) (local.get $spread)))))
            (local.set $value (i64.const 0))
            (local.set $inside (i32.const 0))))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))))

  (func (export "on_packet") (param $sequence i64) (param $deadline i64) (param $length i32)
    (local $at i32) (local $end i32) (local $bytes i32)
    (local.set $at (i32.const 4116))
    (local.set $end (i32.add (i32.const 4096) (local.get $length)))
    (loop $next
      (if (i32.le_u (i32.add (local.get $at) (i32.const 2)) (local.get $end)) (then
        (local.set $bytes (i32.or
          (i32.shl (i32.load8_u (local.get $at)) (i32.const 8))
          (i32.load8_u offset=1 (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 2)))
        (if (i32.le_u (i32.add (local.get $at) (local.get $bytes)) (local.get $end)) (then
          (call $message (local.get $at) (i32.add (local.get $at) (local.get $bytes)))
          (local.set $at (i32.add (local.get $at) (local.get $bytes)))
          (br $next))))))))
