// A blur of 3 x 3 points, in two passes over an image that is continued by zeros.
#read_rows = affine_map<(y, x, d) -> (y + d, x)>
#read_columns = affine_map<(y, x, d) -> (y, x + d)>
#tap = affine_map<(y, x, d) -> (d)>
#here = affine_map<(y, x, d) -> (y, x)>

func.func @blur(%image: tensor<1536x2560xf32>) -> tensor<1536x2560xf32> {
  %zero = arith.constant 0.0 : f32
  %weights = arith.constant dense<[0.25, 0.5, 0.25]> : tensor<3xf32>
  %padded = tensor.pad %image low[1, 1] high[1, 1] {
    ^bb0(%y: index, %x: index):
      tensor.yield %zero : f32
  } : tensor<1536x2560xf32> to tensor<1538x2562xf32>
  %rows_empty = tensor.empty() : tensor<1536x2562xf32>
  %rows_zero = linalg.fill ins(%zero : f32) outs(%rows_empty : tensor<1536x2562xf32>) -> tensor<1536x2562xf32>
  %rows = linalg.generic
      {indexing_maps = [#read_rows, #tap, #here], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%padded, %weights : tensor<1538x2562xf32>, tensor<3xf32>) outs(%rows_zero : tensor<1536x2562xf32>) {
    ^bb0(%value: f32, %weight: f32, %sum: f32):
      %product = arith.mulf %value, %weight : f32
      %next = arith.addf %sum, %product : f32
      linalg.yield %next : f32
  } -> tensor<1536x2562xf32>
  %empty = tensor.empty() : tensor<1536x2560xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1536x2560xf32>) -> tensor<1536x2560xf32>
  %soft = linalg.generic
      {indexing_maps = [#read_columns, #tap, #here], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%rows, %weights : tensor<1536x2562xf32>, tensor<3xf32>) outs(%init : tensor<1536x2560xf32>) {
    ^bb0(%value: f32, %weight: f32, %sum: f32):
      %product = arith.mulf %value, %weight : f32
      %next = arith.addf %sum, %product : f32
      linalg.yield %next : f32
  } -> tensor<1536x2560xf32>
  return %soft : tensor<1536x2560xf32>
}
