// Harris' corners: gradients by Sobel's filters, sums of their products over 3 x 3 points, and the response of these.
#window = affine_map<(y, x, dy, dx) -> (y + dy, x + dx)>
#tap = affine_map<(y, x, dy, dx) -> (dy, dx)>
#here = affine_map<(y, x, dy, dx) -> (y, x)>
#point = affine_map<(y, x) -> (y, x)>

func.func @harris(%image: tensor<1024x1536xf32>) -> tensor<1020x1532xf32> {
  %zero = arith.constant 0.0 : f32
  %k = arith.constant 0.04 : f32
  %across = arith.constant dense<[[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]> : tensor<3x3xf32>
  %down = arith.constant dense<[[-1.0, -2.0, -1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 1.0]]> : tensor<3x3xf32>
  %gradients = tensor.empty() : tensor<1022x1534xf32>
  %gradients_zero = linalg.fill ins(%zero : f32) outs(%gradients : tensor<1022x1534xf32>) -> tensor<1022x1534xf32>
  %ix = linalg.conv_2d ins(%image, %across : tensor<1024x1536xf32>, tensor<3x3xf32>) outs(%gradients_zero : tensor<1022x1534xf32>) -> tensor<1022x1534xf32>
  %iy = linalg.conv_2d ins(%image, %down : tensor<1024x1536xf32>, tensor<3x3xf32>) outs(%gradients_zero : tensor<1022x1534xf32>) -> tensor<1022x1534xf32>
  %responses = tensor.empty() : tensor<1020x1532xf32>
  %responses_zero = linalg.fill ins(%zero : f32) outs(%responses : tensor<1020x1532xf32>) -> tensor<1020x1532xf32>
  %taps = tensor.empty() : tensor<3x3xf32>
  %ixx = linalg.mul ins(%ix, %ix : tensor<1022x1534xf32>, tensor<1022x1534xf32>) outs(%gradients : tensor<1022x1534xf32>) -> tensor<1022x1534xf32>
  %sxx = linalg.generic
      {indexing_maps = [#window, #tap, #here], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%ixx, %taps : tensor<1022x1534xf32>, tensor<3x3xf32>) outs(%responses_zero : tensor<1020x1532xf32>) {
    ^bb0(%value: f32, %unused: f32, %sum: f32):
      %next = arith.addf %sum, %value : f32
      linalg.yield %next : f32
  } -> tensor<1020x1532xf32>
  %iyy = linalg.mul ins(%iy, %iy : tensor<1022x1534xf32>, tensor<1022x1534xf32>) outs(%gradients : tensor<1022x1534xf32>) -> tensor<1022x1534xf32>
  %syy = linalg.generic
      {indexing_maps = [#window, #tap, #here], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%iyy, %taps : tensor<1022x1534xf32>, tensor<3x3xf32>) outs(%responses_zero : tensor<1020x1532xf32>) {
    ^bb0(%value: f32, %unused: f32, %sum: f32):
      %next = arith.addf %sum, %value : f32
      linalg.yield %next : f32
  } -> tensor<1020x1532xf32>
  %ixy = linalg.mul ins(%ix, %iy : tensor<1022x1534xf32>, tensor<1022x1534xf32>) outs(%gradients : tensor<1022x1534xf32>) -> tensor<1022x1534xf32>
  %sxy = linalg.generic
      {indexing_maps = [#window, #tap, #here], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%ixy, %taps : tensor<1022x1534xf32>, tensor<3x3xf32>) outs(%responses_zero : tensor<1020x1532xf32>) {
    ^bb0(%value: f32, %unused: f32, %sum: f32):
      %next = arith.addf %sum, %value : f32
      linalg.yield %next : f32
  } -> tensor<1020x1532xf32>
  %response = linalg.generic
      {indexing_maps = [#point, #point, #point, #point], iterator_types = ["parallel", "parallel"]}
      ins(%sxx, %syy, %sxy : tensor<1020x1532xf32>, tensor<1020x1532xf32>, tensor<1020x1532xf32>) outs(%responses : tensor<1020x1532xf32>) {
    ^bb0(%xx: f32, %yy: f32, %xy: f32, %unused: f32):
      %a = arith.mulf %xx, %yy : f32
      %b = arith.mulf %xy, %xy : f32
      %determinant = arith.subf %a, %b : f32
      %trace = arith.addf %xx, %yy : f32
      %square = arith.mulf %trace, %trace : f32
      %less = arith.mulf %k, %square : f32
      %value = arith.subf %determinant, %less : f32
      linalg.yield %value : f32
  } -> tensor<1020x1532xf32>
  return %response : tensor<1020x1532xf32>
}
